"""A fake Hugging Face Hub with repositories in memory; the real client connects to it over HTTP."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

Files = dict[str, bytes]


class Hub:
    """The state of the server. `refused` repositories require a token."""

    def __init__(self) -> None:
        self.repositories: dict[str, dict[str, Files]] = {}  # name -> branch -> files
        self.refused: set[str] = set()
        self.stored: dict[str, bytes] = {}  # large files by their SHA-256
        self.fetched: list[str] = []  # paths of the files that were sent to clients
        self.address = ""

    def commit(self, name: str, branch: str) -> str:
        files = self.repositories[name][branch]
        content = [(path, hashlib.sha256(body).hexdigest()) for path, body in sorted(files.items())]
        return hashlib.sha1(json.dumps([name, content]).encode()).hexdigest()

    def files(self, name: str, revision: str) -> tuple[str, Files] | None:
        """Return the commit and the files of a branch or commit."""
        for branch, files in self.repositories[name].items():
            if revision in (branch, self.commit(name, branch)):
                return self.commit(name, branch), files
        return None


class Handler(BaseHTTPRequestHandler):
    hub: Hub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, content=b"", status=200, **headers):
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Length": str(len(body)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def do_GET(self):
        parts = [unquote(part) for part in urlsplit(self.path).path.strip("/").split("/")]
        if parts[:2] == ["api", "models"]:
            name, (kind, revision, *rest) = "/".join(parts[2:4]), parts[4:] or ["revision", "main"]
        else:
            name, (kind, revision, *rest) = "/".join(parts[:2]), parts[2:]
        if name in self.hub.refused:
            return self.answer({"error": "gated"}, 403, X_Error_Code="GatedRepo")
        if name not in self.hub.repositories:
            return self.answer({"error": "Repository not found"}, 404, X_Error_Code="RepoNotFound")
        found = self.hub.files(name, revision)
        if found is None:
            return self.answer({"error": "Revision not found"}, 404, X_Error_Code="RevisionNotFound")
        commit, files = found
        if kind == "revision":
            return self.answer({"id": name, "sha": commit, "siblings": [{"rfilename": path} for path in files]})
        if kind == "tree":
            entries = [("file", path, hashlib.sha1(body).hexdigest(), len(body)) for path, body in files.items()]
            return self.answer([dict(zip(("type", "path", "oid", "size"), entry, strict=True)) for entry in entries])
        body = files["/".join(rest)]
        if self.command == "GET":
            self.hub.fetched.append("/".join(rest))
        return self.answer(body, ETag=f'"{hashlib.sha1(body).hexdigest()}"', X_Repo_Commit=commit)

    do_HEAD = do_GET

    def do_PUT(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.hub.stored[self.path.rsplit("/", 1)[1]] = body
        self.answer()

    def do_POST(self):
        sent = self.rfile.read(int(self.headers["Content-Length"]))
        parts = [unquote(part) for part in urlsplit(self.path).path.strip("/").split("/")]
        if "Authorization" not in self.headers:
            return self.answer({"error": "Invalid credentials"}, 401)
        if parts == ["api", "repos", "create"]:
            asked = json.loads(sent)
            name = f"{asked['organization']}/{asked['name']}"
            new = self.hub.repositories.setdefault(name, {"main": {}})
            return self.answer({"url": f"{self.hub.address}/{name}"}, 200 if new == {"main": {}} else 409)
        if parts == ["api", "validate-yaml"]:
            return self.answer({"errors": [], "warnings": []})
        if parts[-1] == "batch":  # upload addresses of large files
            objects = [
                {**one, "actions": {"upload": {"href": f"{self.hub.address}/lfs/{one['oid']}"}}}
                for one in json.loads(sent)["objects"]
            ]
            return self.answer({"transfer": "basic", "objects": objects})
        name, kind, revision = "/".join(parts[2:4]), parts[4], parts[5]
        if kind == "branch":
            branches = self.hub.repositories[name]
            branches.setdefault(revision, dict(branches["main"]))
            return self.answer({})
        if kind == "preupload":
            paths = [one["path"] for one in json.loads(sent)["files"]]
            modes = ["lfs" if path.endswith(".safetensors") else "regular" for path in paths]
            found = [{"path": p, "uploadMode": m, "shouldIgnore": False} for p, m in zip(paths, modes, strict=True)]
            return self.answer({"files": found})
        files = self.hub.repositories[name][revision]
        for line in sent.decode().splitlines():
            operation = json.loads(line)
            if operation["key"] == "file":
                files[operation["value"]["path"]] = base64.b64decode(operation["value"]["content"])
            elif operation["key"] == "lfsFile":
                files[operation["value"]["path"]] = self.hub.stored[operation["value"]["oid"]]
        commit = self.hub.commit(name, revision)
        return self.answer({"commitOid": commit, "commitUrl": f"{self.hub.address}/{name}/commit/{commit}"})


@contextmanager
def serving() -> Iterator[Hub]:
    hub = Hub()
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("OfHub", (Handler,), {"hub": hub}))
    hub.address = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
