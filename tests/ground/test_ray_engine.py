"""A Ray that the engine starts is private: all of its processes listen on loopback only."""

import json
import subprocess
import sys
from ipaddress import IPv6Address, ip_address

import pytest

pytest.importorskip("ray", reason="needs ray")

PROGRAM = """
import json, psutil, sys
if "imported" in sys.argv:
    import ray
from topicscope.ground import open_engine

def square(common, item):
    return common + item**2

def listening(process):
    try:
        connections = process.net_connections("inet")
        return [(process.name(), c.laddr.ip) for c in connections if c.status == psutil.CONN_LISTEN]
    except psutil.NoSuchProcess:  # it ended while the others were asked
        return []

with open_engine("ray", workers=2) as engine:
    results = sorted(engine(square, 1, range(6)))
    own = psutil.Process()
    sockets = [socket for process in (own, *own.children(recursive=True)) for socket in listening(process)]
print(json.dumps([results, sockets]))
"""


def is_loopback(address: str) -> bool:
    found = ip_address(address)
    mapped = found.ipv4_mapped if isinstance(found, IPv6Address) else None  # ::ffff:127.0.0.1
    return (mapped or found).is_loopback


@pytest.mark.parametrize("before", ["", "imported"])
def test_every_socket_of_a_private_ray_is_on_loopback(before: str) -> None:
    """Also where the caller has imported Ray already, with its own settings."""
    done = subprocess.run([sys.executable, "-c", PROGRAM, before], capture_output=True, text=True, check=True)
    results, sockets = json.loads(done.stdout)
    assert results == [[i, 1 + i**2] for i in range(6)]
    assert {"gcs_server", "raylet"} <= {name for name, _ in sockets}  # the list is not empty by mistake
    assert [(name, address) for name, address in sockets if not is_loopback(address)] == []
