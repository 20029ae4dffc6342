"""The files of the page: small, whole, and under a strict policy."""

import gzip
import re
import runpy
import shutil
import tarfile
from pathlib import Path

import httpx
import pytest

from tests.service.process import ServerProcess
from wolfstream.service.console import plots
from wolfstream.service.console.files import INDEX, read_files

ROOT = Path(__file__).parents[2]
HTML = {"Accept": "text/html"}
FILES = read_files()
OWN = {name: file for name, file in FILES.items() if not name.startswith("plots")}


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
    assert {name.decode() for name in imported} | named >= OWN.keys() - {INDEX}


def test_the_page_has_nothing_that_its_policy_forbids():
    text = FILES[INDEX].content.decode()
    assert not re.search(r"<style|\sstyle=|\son\w+=|javascript:|https?://", text)
    assert all("</script>" in tag for tag in re.findall(r"<script[^>]*>.{0,20}", text))


def test_scripts_put_text_into_the_page_as_text():
    scripts = b"".join(file.content for name, file in OWN.items() if name.endswith(".js"))
    assert not re.search(rb"innerHTML\s*=[^=]|outerHTML\s*=|insertAdjacentHTML|eval\(", scripts)


def test_the_files_are_small():
    assert sum(len(gzip.compress(file.content)) for file in FILES.values()) < 400_000
    assert sum(len(gzip.compress(file.content)) for file in OWN.values()) < 40_000


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


class TestBuilding:
    """A wheel without plots is not built; an editable install needs none."""

    @pytest.fixture
    def build(self, tmp_path: Path, monkeypatch):
        root = tmp_path / "source"
        package = root / "service" / "console"
        (package / "static").mkdir(parents=True)
        shutil.copy(plots.__file__, package)
        hooks = runpy.run_path(str(ROOT / "hatch_build.py"))
        monkeypatch.setenv("PATH", str(tmp_path))
        return hooks["PlotsHook"](str(root), {}, None, None, str(tmp_path), "wheel").initialize

    def test_a_wheel_fails_without_npm(self, build):
        with pytest.raises(Exception, match="npm is not installed"):
            build("standard", {})

    def test_an_editable_install_does_not(self, build):
        build("editable", {})


class TestFetching:
    def test_a_package_with_another_hash_is_refused(self, tmp_path: Path, monkeypatch):
        module = tmp_path / "plots.py"
        with tarfile.open(tmp_path / plots.PACKAGE, "w:gz") as archive:
            archive.add(__file__, "package/LICENSE")
        monkeypatch.setattr(plots, "__file__", str(module))
        with pytest.raises(plots.CannotFetch, match="hash differs"):
            plots.fetch(tmp_path)
        assert not (tmp_path / "plots.js").exists()

    def test_without_npm_it_says_what_to_do(self, tmp_path: Path, monkeypatch):
        monkeypatch.setattr(plots, "__file__", str(tmp_path / "plots.py"))
        monkeypatch.setenv("PATH", str(tmp_path))
        with pytest.raises(plots.CannotFetch, match="npm is not installed"):
            plots.fetch(tmp_path)

    def test_what_is_there_is_not_fetched_again(self, tmp_path: Path, monkeypatch):
        for name in plots.FILES.values():
            (tmp_path / name).write_text("there")
        monkeypatch.setenv("PATH", str(tmp_path))
        plots.fetch(tmp_path)
