"""What is fetched is what was meant, from where pip would fetch it."""

import hashlib
import http.server
import json
import threading

import pytest

from support import index

NAME, CONTENT = "some-1.0.tar.gz", b"not built by anybody"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Handler(http.server.BaseHTTPRequestHandler):
    kind, wanted = "application/vnd.pypi.simple.v1+json", None

    def do_GET(self):
        kind, content = "application/octet-stream", CONTENT
        if self.wanted and self.headers["Authorization"] != self.wanted:
            self.send_error(401)
            return
        if self.path == "/root/simple/some/":
            kind = self.kind
            content = f'<a href="../../files/{NAME}#sha256={SHA256}">{NAME}</a>'.encode()
            if kind.endswith("json"):
                content = json.dumps({"files": [{"filename": NAME, "url": f"/root/files/{NAME}"}]}).encode()
        elif self.path != f"/root/files/{NAME}":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *args):
        pass


@pytest.fixture
def served(monkeypatch):
    handler = type("Own", (Handler,), {})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setenv("PIP_INDEX_URL", f"http://127.0.0.1:{server.server_port}/root/simple/")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    yield handler
    server.shutdown()


@pytest.mark.parametrize("kind", ["application/vnd.pypi.simple.v1+json", "text/html"])
def test_the_index_that_pip_has(served, tmp_path, kind):
    served.kind = kind
    index.fetch("some", NAME, SHA256, tmp_path / NAME)
    assert [p.read_bytes() for p in tmp_path.iterdir()] == [CONTENT]


def test_an_index_with_a_password(served, tmp_path, monkeypatch):
    served.wanted = "Basic bWU6c2VjcmV0"
    url = index.settings()["index-url"]
    monkeypatch.setenv("PIP_INDEX_URL", url.replace("//", "//me:secret@"))
    index.fetch("some", NAME, SHA256, tmp_path / NAME)
    assert (tmp_path / NAME).read_bytes() == CONTENT


def test_another_file_than_was_meant(served, tmp_path):
    with pytest.raises(ValueError, match="was expected"):
        index.fetch("some", NAME, "0" * 64, tmp_path / NAME)
    with pytest.raises(LookupError, match=r"no other-1\.0"):
        index.fetch("some", "other-1.0.tar.gz", SHA256, tmp_path / NAME)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_pip_looks_into(served, tmp_path, monkeypatch):
    folder = tmp_path / "wheels"
    folder.mkdir()
    (folder / NAME).write_bytes(CONTENT)
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    index.fetch("some", NAME, SHA256, tmp_path / NAME)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path / "nothing"))
    with pytest.raises(index.Unreachable):
        index.fetch("some", NAME, SHA256, tmp_path / NAME)
