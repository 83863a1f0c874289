"""Fetch a file of the package index, as pip is told to reach it, without building anything.

``pip download`` of a source distribution makes its metadata, for which it installs, or builds,
what the distribution is built with: that wants a compiler.
"""

import hashlib
import html.parser
import json
import os
import ssl
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

DEFAULT = "https://pypi.org/simple"
KINDS = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"
TIMEOUT = 60


class Unreachable(Exception):
    """The index can't be reached, which is no failure of what is tested."""


def settings():
    """Return what pip is told, by files and by variables of the environment: those come last."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "config", "list"]
    listed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    found = {}
    for line in listed.splitlines():
        name, _, value = line.partition("=")
        section, _, name = name.rpartition(".")
        if section in ("global", "download", ":env:"):
            found[name] = value.strip("'\"")
    return found


class _Links(html.parser.HTMLParser):
    """Collects the targets of a page's links, by the names of their files."""

    def __init__(self):
        super().__init__()
        self.files = {}

    def handle_starttag(self, tag, attrs):
        if tag == "a" and (target := dict(attrs).get("href")):
            path = urllib.parse.urlsplit(target).path
            self.files[urllib.parse.unquote(path.rpartition("/")[2])] = target


class Index:
    """A package index, which may want a password, or be signed by an authority of one's own."""

    def __init__(self, pip):
        address = urllib.parse.urlsplit(pip.get("index-url", DEFAULT).rstrip("/"))
        host = address.hostname + (f":{address.port}" if address.port else "")
        self.url = urllib.parse.urlunsplit((address.scheme, host, address.path, "", ""))
        trusted = address.hostname in pip.get("trusted-host", "").split()
        context = ssl._create_unverified_context() if trusted else ssl.create_default_context(cafile=pip.get("cert"))
        handlers = [urllib.request.HTTPSHandler(context=context)]
        if pip.get("proxy"):
            handlers.append(urllib.request.ProxyHandler(dict.fromkeys(("http", "https"), pip["proxy"])))
        if address.username:
            known = urllib.request.HTTPPasswordMgrWithPriorAuth()
            name, password = (urllib.parse.unquote(part or "") for part in (address.username, address.password))
            known.add_password(None, urllib.parse.urljoin(self.url, "/"), name, password, is_authenticated=True)
            handlers.append(urllib.request.HTTPBasicAuthHandler(known))
        self.opener = urllib.request.build_opener(*handlers)

    def get(self, url, **headers):
        try:
            with self.opener.open(urllib.request.Request(url, headers=headers), timeout=TIMEOUT) as answer:
                return answer.geturl(), answer.headers.get_content_type(), answer.read()
        except urllib.error.HTTPError:
            raise
        except OSError as error:
            raise Unreachable(f"{urllib.parse.urlsplit(url).hostname}: {error}") from error

    def files(self, project):
        """Return the addresses of a project's files by their names."""
        base, kind, page = self.get(f"{self.url}/{project}/", Accept=KINDS)
        if kind.endswith("json"):
            links = {file["filename"]: file["url"] for file in json.loads(page)["files"]}
        else:
            parser = _Links()
            parser.feed(page.decode())
            links = parser.files
        return {name: urllib.parse.urljoin(base, target) for name, target in links.items()}


def fetch(project, name, sha256, to):
    """Put the file of that name, which has that digest, at the path ``to``."""
    pip = settings()
    for folder in pip.get("find-links", "").split():
        if (found := Path(folder.removeprefix("file://")) / name).is_file():
            content = found.read_bytes()
            break
    else:
        index = Index(pip)
        files = index.files(project)
        if name not in files:
            raise LookupError(f"the index has no {name} of {project}")
        _, _, content = index.get(files[name])
    if (digest := hashlib.sha256(content).hexdigest()) != sha256:
        raise ValueError(f"{name} has the SHA-256 {digest}, and {sha256} was expected")
    part = Path(f"{to}.part{os.getpid()}")
    part.write_bytes(content)
    part.replace(to)
