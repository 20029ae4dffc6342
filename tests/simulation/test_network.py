"""HTTP between simulated processes, against an application that echoes."""

import pytest

from tests.simulation.test_kernel import ran

ECHO = """
from tests.simulation.kernel import Group
from tests.simulation.network import Broken, Listener, Network, NotConnected
network = Network(kernel, sys.argv[1])
async def echo(scope, receive, send):
    message = await receive()
    await asyncio.sleep(1)
    await send({"type": "http.response.start", "status": 200, "headers": []})
    body = message["body"]
    await send({"type": "http.response.body", "body": body[:2], "more_body": True})
    await send({"type": "http.response.body", "body": body[2:]})
def serve():
    loop = loops.Loop()
    network.listen("a:1", Listener(echo, loop, server, lambda *_: None))
    loop.run_forever()
server, client = Group("server"), Group("client")
def in_client(work):
    found = []
    kernel.start(lambda: found.append(asyncio.run(work())), "client", client)
    while not found:
        time.sleep(0.5)
    return found[0]
async def call():
    try:
        answer = await network.call("POST", "http://a:1/x", (), b"content", seconds=20)
        return answer.status, answer.body
    except (NotConnected, Broken, TimeoutError) as error:
        return type(error).__name__
kernel.start(serve, "server", server)
time.sleep(0.1)
"""


@pytest.mark.parametrize(
    ("code", "printed"),
    [
        ("print(in_client(call))", "(200, b'content')"),
        ("network.faults.lost_requests = 1\nprint(in_client(call))", "Broken"),
        ("network.faults.lost_responses = 1\nprint(in_client(call))", "Broken"),
        ("network.faults.cut_responses = 1\nprint(in_client(call))", "Broken"),
        ("network.cut('client', 'server')\nprint(in_client(call))", "NotConnected"),
        (
            "kernel.call_later(0.5, lambda: network.cut('client', 'server'))\n"
            "kernel.call_later(9, network.heal)\nprint(in_client(call))",
            "(200, b'content')",
        ),
        (
            "kernel.call_later(0.5, lambda: (network.ended(server), kernel.kill(server)))\n"
            "print(in_client(call), in_client(call))",
            "Broken NotConnected",
        ),
        ("kernel.pause(server)\nprint(in_client(call))", "TimeoutError"),
        (
            "kernel.pause(server)\nkernel.call_later(9, lambda: kernel.resume(server))\n"
            "print(in_client(call))",
            "(200, b'content')",
        ),
    ],
)
def test_call_ends_as_network_lets_it(code: str, printed: str) -> None:
    assert ran(f"{ECHO}\n{code}").strip() == printed
