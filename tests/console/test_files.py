"""The files of the page: small, whole, and under a strict policy."""

import gzip
import re

import httpx
import pytest

from tests.service.process import ServerProcess
from wolfstream.service.web.routes.pages import INDEX, read_files

HTML = {"Accept": "text/html"}
FILES = read_files()


def test_the_page_names_files_that_there_are():
    text = FILES[INDEX].content.decode()
    named = set(re.findall(r'(?:src|href)="console/([^"]+)"', text))
    assert named <= FILES.keys()
    imported = {
        name
        for file in FILES.values()
        if file.media_type.startswith("text/javascript")
        for name in re.findall(rb'from "\./([^"]+)"', file.content)
    }
    assert {name.decode() for name in imported} | named >= FILES.keys() - {INDEX}


def test_the_page_has_nothing_that_its_policy_forbids():
    text = FILES[INDEX].content.decode()
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:|https?://", text)
    assert all("</script>" in tag for tag in re.findall(r"<script[^>]*>.{0,20}", text))


def test_scripts_put_text_into_the_page_as_text():
    scripts = b"".join(file.content for name, file in FILES.items() if name.endswith(".js"))
    assert not re.search(rb"innerHTML\s*=[^=]|outerHTML\s*=|insertAdjacentHTML|eval\(", scripts)


def test_the_files_are_small():
    assert sum(len(gzip.compress(file.content)) for file in FILES.values()) < 40_000


@pytest.mark.parametrize("name", sorted(FILES.keys() - {INDEX}))
def test_a_file_is_served_without_a_key_and_once(server: ServerProcess, name: str):
    url = f"{server.url}/console/{name}"
    answer = httpx.get(url)
    assert answer.status_code == 200
    assert answer.content == FILES[name].content
    assert answer.headers["x-content-type-options"] == "nosniff"
    again = httpx.get(url, headers={"If-None-Match": answer.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


def test_the_policy_allows_the_server_alone(server: ServerProcess):
    policy = httpx.get(server.url, headers=HTML).headers["content-security-policy"]
    allowed = dict(part.split(" ", 1) for part in policy.split("; "))
    assert allowed.pop("default-src") == "'none'"
    assert set(allowed.values()) == {"'self'", "'none'"}
    assert allowed["script-src"] == allowed["style-src"] == "'self'"


@pytest.mark.parametrize("path", ["/console/", "/console/../keys.json", "/console/nothing.js"])
def test_there_are_no_other_files(server: ServerProcess, path: str):
    assert httpx.get(httpx.URL(server.url, raw_path=path.encode())).status_code == 404
