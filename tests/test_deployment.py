"""The files that start a fleet: they are valid, and their names agree with each other."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.service import balancer
from wolfstream.service.settings import Settings

DOCKER = Path(__file__).resolve().parent.parent / "docker"
COMPOSE = yaml.safe_load((DOCKER / "compose.fleet.yaml").read_text())
MANIFESTS = list(yaml.safe_load_all((DOCKER / "kubernetes.fleet.yaml").read_text()))
HAPROXY = (DOCKER / "haproxy.cfg").read_text()
REPLICAS = ["replica-a", "replica-b", "replica-c"]
PORT = 8000


def check_with(program: str, *arguments: str) -> None:
    """Run a program of the extra `hard`, or another one that may be missing, on a file."""
    beside = str(Path(sys.executable).parent)
    found = shutil.which(program, path=beside) or shutil.which(program)
    if found is None:
        pytest.skip(f"{program} is not installed (the extra hard)")
    result = subprocess.run([found, *arguments], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def manifest(kind: str) -> Any:
    (found,) = [one for one in MANIFESTS if one["kind"] == kind]
    return found


class TestCompose:
    def test_nothing_runs_with_more_than_it_needs(self) -> None:
        """`make image-test` brings the file up; its reader knows every key that is in it."""
        for name, service in COMPOSE["services"].items():
            assert service["read_only"] is True, name
            assert service["cap_drop"] == ["ALL"], name
            assert service["security_opt"] == ["no-new-privileges:true"], name
            assert {"pids_limit", "mem_limit"} <= service.keys(), name
            assert not {"privileged", "cap_add", "user"} & service.keys(), name

    @pytest.mark.parametrize("name", REPLICAS)
    def test_replicas_answer_until_the_balancer_has_noticed(self, name: str) -> None:
        (seconds,) = re.findall(r"check inter (\d+)s", HAPROXY)
        (times,) = re.findall(r"fall (\d+)", HAPROXY)
        given = COMPOSE["services"][name]["environment"]["WOLFSTREAM_DRAIN_SECONDS"]
        assert float(given) > int(seconds) * int(times) + 1

    @pytest.mark.parametrize("name", REPLICAS)
    def test_each_replica_is_reached_by_its_name(self, name: str) -> None:
        given = COMPOSE["services"][name]["environment"]
        assert given["WOLFSTREAM_ADVERTISE"] == f"http://{name}:{PORT}"
        assert name in given["WOLFSTREAM_HOSTS"].split(",")

    @pytest.mark.parametrize("name", REPLICAS)
    def test_replicas_reach_all_servers_and_have_settings_that_exist(self, name: str) -> None:
        service = COMPOSE["services"][name]
        servers = service["environment"]["WOLFSTREAM_FLEET"].split(",")
        assert [re.fullmatch(r"nats://(.+):4222", one)[1] for one in servers] == service[  # type: ignore[index]
            "depends_on"
        ]
        known = {f"WOLFSTREAM_{setting.upper()}" for setting in Settings.model_fields}
        assert service["environment"].keys() <= known

    def test_servers_of_nats_flush_and_know_each_other(self) -> None:
        servers = [name for name in COMPOSE["services"] if name.startswith("nats-")]
        settings = COMPOSE["configs"]["nats.conf"]["content"]
        assert "sync_interval: always" in settings
        assert re.findall(r"nats://([\w-]+):6222", settings) == servers
        kept = [COMPOSE["services"][name]["volumes"][0] for name in servers]
        assert kept == [f"{name}:/data" for name in servers]


class TestBalancer:
    @pytest.mark.skipif(bool(balancer.MISSING), reason=balancer.MISSING)
    def test_is_what_haproxy_reads(self) -> None:
        check_with(balancer.PROGRAM, "-c", "-f", str(balancer.SETTINGS))

    def test_has_all_replicas_behind_it(self) -> None:
        assert re.findall(rf"server \w+ ([\w-]+):{PORT}", HAPROXY) == REPLICAS
        assert COMPOSE["services"]["balancer"]["depends_on"] == REPLICAS

    def test_sends_nothing_twice_that_may_have_been_learned(self) -> None:
        assert re.findall(r"^ *retry-on (.*)$", HAPROXY, re.MULTILINE) == ["conn-failure"]


class TestKubernetes:
    def test_is_what_kubernetes_reads(self) -> None:
        check_with("kubernetes-validate", "--strict", str(DOCKER / "kubernetes.fleet.yaml"))

    def test_selectors_find_the_replicas(self) -> None:
        pods = manifest("StatefulSet")["spec"]["template"]["metadata"]["labels"]
        services = [one["spec"]["selector"] for one in MANIFESTS if one["kind"] == "Service"]
        budget = manifest("PodDisruptionBudget")["spec"]["selector"]["matchLabels"]
        assert [*services, budget] == [pods] * 3

    def test_each_replica_is_reached_by_its_name(self) -> None:
        replicas = manifest("StatefulSet")["spec"]
        (container,) = replicas["template"]["spec"]["containers"]
        given = {one["name"]: one.get("value") for one in container["env"]}
        of_pods = f"http://$(POD).{replicas['serviceName']}:{PORT}"
        assert given["WOLFSTREAM_ADVERTISE"] == of_pods
        known = {f"WOLFSTREAM_{setting.upper()}" for setting in Settings.model_fields}
        assert given.keys() <= {*known, "POD"}

    def test_no_service_sets_variables_of_the_server(self) -> None:
        """A Service called wolfstream sets WOLFSTREAM_PORT, to an address."""
        pod = manifest("StatefulSet")["spec"]["template"]["spec"]
        assert pod["enableServiceLinks"] is False

    def test_a_replica_is_not_asked_before_it_can_answer(self) -> None:
        (container,) = manifest("StatefulSet")["spec"]["template"]["spec"]["containers"]
        probes = {kind: container[f"{kind}Probe"]["httpGet"]["path"] for kind in _PROBES}
        assert probes == _PROBES


_PROBES = {"startup": "/livez", "liveness": "/livez", "readiness": "/readyz"}
