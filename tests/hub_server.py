"""A Hugging Face Hub in this process: enough of its HTTP protocol for the real `huggingface_hub` and `datasets` clients.

It keeps dataset and model repositories in memory: commits (refused with 412 where their parent is stale), tags, LFS objects, private
repositories and tokens that may read or write. Left out: Xet (clients need HF_HUB_DISABLE_XET=1), branches, pull requests.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, unquote, urlsplit

WRITER, READER = "hf_writer0123456789", "hf_reader0123456789"
LFS_SUFFIXES = (".parquet", ".safetensors")


@dataclass
class File:
    content: bytes
    lfs: bool

    @property
    def oid(self) -> str:
        if self.lfs:
            return hashlib.sha256(self.content).hexdigest()
        return hashlib.sha1(b"blob %d\0" % len(self.content) + self.content).hexdigest()


@dataclass
class Repository:
    private: bool
    commits: dict[str, dict[str, File]] = field(default_factory=dict)  # files by commit, oldest first
    tags: dict[str, str] = field(default_factory=dict)

    @property
    def head(self) -> str:
        return list(self.commits)[-1]

    @property
    def files(self) -> dict[str, File]:
        return self.commits[self.head]

    def commit(self, files: dict[str, File]) -> str:
        """Makes `files` the newest state and returns its id, which names this commit alone."""
        named = sorted((path, file.oid) for path, file in files.items())
        oid = hashlib.sha1(repr((len(self.commits), named)).encode()).hexdigest()
        self.commits[oid] = files
        return oid

    def replace(self, path: str, content: bytes) -> None:
        """Tampers with a file in every commit, past all checks."""
        for files in self.commits.values():
            if path in files:
                files[path] = File(content, files[path].lfs)


class Refusal(Exception):
    def __init__(self, status: int, code: str = "", message: str = "") -> None:
        super().__init__(status, code, message)


class HubServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.repositories: dict[str, Repository] = {}
        self.objects: dict[str, bytes] = {}  # LFS, by sha256
        self.uploads: list[str] = []  # the sha256 of every object that a client has sent
        self.requests: list[str] = []
        self.before_upload: Callable[[], None] = lambda: None
        self.before_download: Callable[[str], None] = lambda path: None
        self.before_commit: Callable[[Repository], None] = lambda repository: None
        self.answers_with_a_page = False  # as the login page of a hotel does
        self.lock = threading.RLock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def __enter__(self) -> HubServer:
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return self

    def handle_error(self, *_: object) -> None:
        """A client that broke off, or was killed by a test, is no news."""

    def __exit__(self, *error: object) -> None:
        self.shutdown()
        self.server_close()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16
    server: HubServer

    def log_message(self, *_: object) -> None:
        pass

    def do_GET(self) -> None:
        self.answer()

    do_HEAD = do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815

    def answer(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Transfer-Encoding") == "chunked":
            body = self.read_chunks()
        path = urlsplit(self.path).path
        self.server.requests.append(f"{self.command} {path}")
        try:
            with self.server.lock:
                status, headers, content = self.route(path, body)
        except Refusal as refusal:
            status, code, message = refusal.args
            headers = {"X-Error-Code": code, "X-Error-Message": message} if code or message else {}
            content = json.dumps({"error": message or code}).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(content)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def read_chunks(self) -> bytes:
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def route(self, path: str, body: bytes) -> tuple[int, dict[str, str], bytes]:
        if self.server.answers_with_a_page:
            return 200, {"Content-Type": "text/html"}, b"<html>Welcome</html>"
        for method, pattern, action in ROUTES:
            matched = re.fullmatch(pattern, path)
            if matched and method == self.command.replace("HEAD", "GET"):
                self.check_token()
                answer = getattr(self, action)(body, *(unquote(part or "") for part in matched.groups()))
                return answer if isinstance(answer, tuple) else (200, {}, json.dumps(answer).encode())
        raise Refusal(404, "EntryNotFound", "no such address")

    # -- who may do what

    @property
    def token(self) -> str:
        return (self.headers.get("Authorization") or "").removeprefix("Bearer ")

    def check_token(self) -> None:
        if self.token not in ("", WRITER, READER):
            raise Refusal(401, message=f"Invalid credentials in Authorization header: {self.token}")

    def must_write(self) -> None:
        if self.token != WRITER:
            raise Refusal(403 if self.token else 401, message=f"{self.token} may not write here")

    def repository(self, name: str) -> Repository:
        repository = self.server.repositories.get(name)
        if repository is None or (repository.private and not self.token):
            raise Refusal(404 if self.token else 401, "RepoNotFound", "Repository not found")
        return repository

    def at(self, name: str, revision: str) -> tuple[str, dict[str, File]]:
        repository = self.repository(name)
        commit = repository.tags.get(revision, repository.head if revision in ("", "main") else revision)
        if commit not in repository.commits:
            raise Refusal(404, "RevisionNotFound", "Invalid rev id")
        return commit, repository.commits[commit]

    # -- reading

    def info(self, _: bytes, name: str, revision: str) -> dict:
        commit, files = self.at(name, revision)
        private = self.repository(name).private
        siblings = [{"rfilename": path} for path in sorted(files)]
        return {"id": name, "sha": commit, "private": private, "siblings": siblings, "tags": [], "downloads": 0}

    def tree(self, _: bytes, name: str, revision: str, folder: str) -> list:
        files = self.at(name, revision)[1]
        inside = {path: file for path, file in files.items() if not folder or path.startswith(f"{folder}/")}
        if folder and not inside:
            raise Refusal(404, "EntryNotFound", "no such folder")
        if parse_qs(urlsplit(self.path).query).get("recursive", ["false"])[0].lower() in ("true", "1"):
            return self.described(inside)
        depth = folder.count("/") + 1 if folder else 0
        return self.described({path: file for path, file in inside.items() if path.count("/") == depth}) + [
            {"type": "directory", "path": path, "oid": "0" * 40, "size": 0}
            for path in sorted({"/".join(path.split("/")[: depth + 1]) for path in inside if path.count("/") > depth})
        ]

    def paths_info(self, body: bytes, name: str, revision: str) -> list:
        wanted = json.loads(body)["paths"] if body[:1] == b"{" else parse_qs(body.decode())["paths"]
        files = self.at(name, revision)[1]
        folders = [
            {"type": "directory", "path": path, "oid": "0" * 40, "size": 0}
            for path in wanted
            if any(known.startswith(f"{path}/") for known in files)
        ]
        return self.described({path: files[path] for path in wanted if path in files}) + folders

    @staticmethod
    def described(files: dict[str, File]) -> list[dict]:
        entries = []
        for path, file in sorted(files.items()):
            lfs = {"lfs": {"oid": file.oid, "size": len(file.content), "pointerSize": 134}} if file.lfs else {}
            entries.append({"type": "file", "path": path, "oid": file.oid[:40], "size": len(file.content), **lfs})
        return entries

    def resolve(self, _: bytes, name: str, revision: str, path: str) -> tuple[int, dict[str, str], bytes]:
        commit, files = self.at(name, revision)
        if path not in files:
            raise Refusal(404, "EntryNotFound", "Entry not found")
        if self.command == "GET":
            self.server.before_download(path)
        content = files[path].content
        headers = {"X-Repo-Commit": commit, "ETag": f'"{files[path].oid}"', "Accept-Ranges": "bytes"}
        wanted = re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range") or "")
        if not wanted:
            return 200, headers, content
        start, end = int(wanted[1]), min(int(wanted[2] or len(content) - 1), len(content) - 1)
        return 206, {**headers, "Content-Range": f"bytes {start}-{end}/{len(content)}"}, content[start : end + 1]

    def refs(self, _: bytes, name: str) -> dict:
        repository = self.repository(name)
        tags = [{"name": tag, "ref": f"refs/tags/{tag}", "targetCommit": oid} for tag, oid in repository.tags.items()]
        main = {"name": "main", "ref": "refs/heads/main", "targetCommit": repository.head}
        return {"branches": [main], "converts": [], "tags": tags}

    # -- writing

    def create(self, body: bytes) -> tuple[int, dict[str, str], bytes]:
        self.must_write()
        wanted = json.loads(body)
        name = f"{wanted['organization']}/{wanted['name']}"
        is_new = name not in self.server.repositories
        if is_new:
            repository = self.server.repositories[name] = Repository(wanted.get("visibility") == "private")
            repository.commit({".gitattributes": File(b"*.parquet filter=lfs\n", lfs=False)})
        kind = "datasets/" if wanted.get("type") == "dataset" else ""
        return 200 if is_new else 409, {}, json.dumps({"url": f"{self.server.url}/{kind}{name}"}).encode()

    def validate(self, _: bytes) -> dict:
        return {"errors": [], "warnings": []}

    def preupload(self, body: bytes, name: str, revision: str) -> dict:
        self.must_write()
        files = self.at(name, revision)[1]
        modes = [
            {
                "path": file["path"],
                "uploadMode": "lfs" if file["path"].endswith(LFS_SUFFIXES) else "regular",
                "shouldIgnore": False,
                "oid": files[file["path"]].oid if file["path"] in files else None,
            }
            for file in json.loads(body)["files"]
        ]
        return {"files": modes}

    def lfs_batch(self, body: bytes, name: str) -> dict:
        self.must_write()
        self.repository(name)
        objects = json.loads(body)["objects"]
        for wanted in objects:
            if wanted["oid"] not in self.server.objects:
                wanted["actions"] = {"upload": {"href": f"{self.server.url}/lfs/{wanted['oid']}"}}
        return {"transfer": "basic", "objects": objects}

    def upload(self, body: bytes, oid: str) -> dict:
        self.server.before_upload()
        if hashlib.sha256(body).hexdigest() != oid:
            raise Refusal(400, message="the object is not what it is called")
        self.server.objects[oid] = body
        self.server.uploads.append(oid)
        return {}

    def commit(self, body: bytes, name: str, revision: str) -> dict:
        self.must_write()
        repository = self.repository(name)
        self.server.before_commit(repository)
        lines = [json.loads(line) for line in body.splitlines()]
        parent = lines[0]["value"].get("parentCommit")
        if parent not in (None, repository.head):
            raise Refusal(412, message="A commit has happened since. Please refresh and try again.")
        files = dict(repository.files)
        for line in lines[1:]:
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = File(base64.b64decode(value["content"]), lfs=False)
            elif line["key"] == "lfsFile":
                files[value["path"]] = File(self.server.objects[value["oid"]], lfs=True)
            elif line["key"] == "deletedFile":
                del files[value["path"]]
            else:
                raise Refusal(400, message=f"unknown operation {line['key']}")
        oid = repository.commit(files)
        return {"success": True, "commitOid": oid, "commitUrl": f"{self.server.url}/datasets/{name}/commit/{oid}"}

    def tag(self, body: bytes, name: str, revision: str) -> dict:
        self.must_write()
        commit = self.at(name, revision)[0]
        tags = self.repository(name).tags
        wanted = json.loads(body)["tag"]
        if wanted in tags:
            raise Refusal(409, message="Tag reference exists already")
        tags[wanted] = commit
        return {}

    def untag(self, _: bytes, name: str, tag: str) -> dict:
        self.must_write()
        if self.repository(name).tags.pop(tag, None) is None:
            raise Refusal(404, "RevisionNotFound", "no such tag")
        return {}


_NAME = r"([\w.-]+/[\w.-]+)"
_API = "/api/(?:datasets|models)"
ROUTES = [
    ("POST", "/api/repos/create", "create"),
    ("POST", "/api/validate-yaml", "validate"),
    ("GET", f"{_API}/{_NAME}(?:/revision/([^/]+))?", "info"),
    ("GET", f"{_API}/{_NAME}/tree/([^/]+)(?:/(.+?))?/?", "tree"),
    ("GET", f"{_API}/{_NAME}/refs", "refs"),
    ("POST", f"{_API}/{_NAME}/paths-info/([^/]+)", "paths_info"),
    ("POST", f"{_API}/{_NAME}/preupload/([^/]+)", "preupload"),
    ("POST", f"{_API}/{_NAME}/commit/([^/]+)", "commit"),
    ("POST", f"{_API}/{_NAME}/tag/([^/]+)", "tag"),
    ("DELETE", f"{_API}/{_NAME}/tag/([^/]+)", "untag"),
    ("POST", rf"(?:/datasets)?/{_NAME}\.git/info/lfs/objects/batch", "lfs_batch"),
    ("PUT", "/lfs/([0-9a-f]{64})", "upload"),
    ("GET", f"(?:/datasets)?/{_NAME}/resolve/([^/]+)/(.+)", "resolve"),
]
