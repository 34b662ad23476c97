"""The openai engine against a real server, `transformers serve` on the CPU with the embedded model, and against bad ones."""

import contextlib
import os
import socket
import subprocess
import sys
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from cobalt_data.engines import Sampling, open_engine
from cobalt_data.engines.openai import OpenAIEngine
from cobalt_data.errors import EngineError
from cobalt_data.models import resolve_model

CHAT = [{"role": "user", "content": "What is the capital of France?"}]
START_S = 120


class Server:
    def __init__(self, log: Path) -> None:
        self.model = str(resolve_model("smollm2-135m").path)
        self.port = free_port()
        self.base_url = f"http://127.0.0.1:{self.port}/v1"
        self.log = log
        command = "import sys; from transformers.cli.transformers import main; sys.exit(main())"
        options = ["--host", "127.0.0.1", "--port", str(self.port), "--device", "cpu", "--dtype", "bfloat16"]
        with log.open("wb") as file:
            self.process = subprocess.Popen(
                [sys.executable, "-c", command, "serve", self.model, *options],
                stdout=file,
                stderr=subprocess.STDOUT,
                env={**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
            )

    def wait(self) -> None:
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5).read()
                return
            except OSError:
                time.sleep(0.2)
        pytest.fail(f"transformers serve did not come up:\n{self.log.read_text()[-2000:]}")

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextlib.contextmanager
def endpoint(answers):
    """An HTTP server that gives these answers, (status, JSON), one per request; yields its base URL."""
    remaining = iter(answers)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, body = next(remaining)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Retry-After", "0")
            self.end_headers()
            self.wfile.write(body.encode())

        do_GET = do_POST  # noqa: N815

        def log_message(self, *arguments):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        finally:
            server.shutdown()


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    server = Server(tmp_path_factory.mktemp("serve") / "log")
    try:
        server.wait()
        yield server
    finally:
        server.kill()


@pytest.fixture
def engine(server):
    engine = open_engine("auto", server.model, base_url=server.base_url)
    yield engine
    engine.close()


def test_one_completion_per_seed_comes_back_in_order_as_text_alone(engine):
    chats = [CHAT, [*CHAT, {"role": "assistant", "content": "Paris."}, {"role": "user", "content": "And of Italy?"}]]
    groups = engine.complete(chats, [[1, 2**62], [3]], Sampling(temperature=0, max_tokens=6))
    assert [len(group) for group in groups] == [2, 1]
    first = groups[0][0]
    assert first.text.startswith("The capital of France") and first == groups[0][1]
    assert first.finish_reason == "length" and first.completion_tokens == 6
    assert first.token_ids is None and first.logprobs is None
    assert groups[1][0].prompt_tokens > first.prompt_tokens


def test_a_completion_that_ends_by_itself_says_so(engine):
    ((completion,),) = engine.complete([CHAT], [[1]], Sampling(temperature=0, max_tokens=16))
    assert completion.finish_reason == "stop" and completion.text == "The capital of France is Paris."


def test_the_token_estimate_is_near_what_the_server_counts(engine):
    text = [{"role": "user", "content": Path(__file__).read_text()[:2000]}]
    ((completion,),) = engine.complete([text], [[1]], Sampling(temperature=0, max_tokens=1))
    assert 0.5 < engine.count_tokens(text) / completion.prompt_tokens < 2


def test_a_wrong_path_is_told_in_one_line(server):
    engine = open_engine("openai", server.model, base_url=f"http://127.0.0.1:{server.port}/v2")
    with pytest.raises(EngineError, match=r"404.*most URLs end in /v1") as caught:
        engine.complete([CHAT], [[1]], Sampling(max_tokens=1))
    assert "\n" not in str(caught.value)
    engine.close()


def test_a_dead_port_is_told_at_once():
    began = time.monotonic()
    with pytest.raises(EngineError, match=r"cannot be reached.*is the server up"):
        open_engine("openai", "any", base_url=f"http://127.0.0.1:{free_port()}/v1")
    assert time.monotonic() - began < 20


def test_no_address_is_told():
    with pytest.raises(EngineError, match="cannot be reached"):
        open_engine("openai", "any", base_url="no-address")


def test_a_refused_key_is_told_and_not_shown(monkeypatch):
    monkeypatch.setenv("COBALT_API_KEY", "sk-secret-1234")
    with endpoint([(401, '{"error": {"message": "bad key sk-secret-1234"}}')]) as url:
        with pytest.raises(EngineError, match=r"refuses the key \(401\): set COBALT_API_KEY") as caught:
            open_engine("openai", "any", base_url=url)
        assert "secret" not in str(caught.value)


def test_a_busy_endpoint_is_asked_again():
    answer = '{"choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "hi"}}]}'
    with endpoint([(404, "{}"), (429, "{}"), (503, "{}"), (200, answer)]) as url:
        engine = open_engine("openai", "any", base_url=url)
        ((completion,),) = engine.complete([CHAT], [[1]], Sampling(max_tokens=1))
        assert completion.text == "hi" and completion.prompt_tokens == engine.count_tokens(CHAT)
        engine.close()


@pytest.mark.parametrize("body", ["<html>hello</html>", "{}", "null", '{"choices": []}'])
def test_an_endpoint_of_another_kind_is_told(body):
    with endpoint([(200, body), (200, body)]) as url, pytest.raises(EngineError, match=r"OpenAI-compatible|no usable"):
        engine = open_engine("openai", "any", base_url=url)
        engine.complete([CHAT], [[1]], Sampling(max_tokens=1))


def test_a_server_that_dies_at_work_ends_the_call(server):  # the last test of this file: the server is gone after it
    engine = OpenAIEngine(server.base_url, server.model, retries=1)
    received = server.log.read_text().count("Request received")
    with ThreadPoolExecutor(1) as caller:
        call = caller.submit(engine.complete, [CHAT], [[1, 2]], Sampling(max_tokens=2000))
        while server.log.read_text().count("Request received") == received:
            assert not call.done()
        server.kill()
        with pytest.raises(EngineError, match="cannot be reached"):
            call.result(timeout=60)
    engine.close()
