"""Device auto: each job goes to where it is expected to be done first."""

import pytest

REALS = ["float32", "float64", "float16", "bfloat16", "complex64", "complex128"]
INTEGERS = ["int8", "uint8", "int32", "int64"]
SLOW_NS = 20_000_000  # what the word "slow" adds to a batch
LONG = 70_000  # products: more than an HTTP thread computes itself


def devices(daemon):
    status = daemon.get("/v1/status").ok()["devices"]
    assert [device.get("speed") for device in daemon.get("/v1/devices").ok()["devices"]] == [
        device.get("speed") for device in status
    ]
    return status


def ask(daemon, n):
    return daemon.dot({"a": [1] * n, "b": [2] * n}).ok()["device"]


def test_the_speed_of_every_type_and_device_is_told(start_faulty):
    cpu, cuda = devices(start_faulty(cuda_min_bytes=0))
    for device in cpu, cuda:
        speed = device["speed"]
        assert sorted(speed) == sorted(REALS + INTEGERS)
        assert all(sorted(speed[dtype]) == ["exact", "fast"] for dtype in REALS)
        assert all(sorted(speed[dtype]) == ["exact"] for dtype in INTEGERS)
    assert "from_bytes" not in cpu["speed"]["float32"]["exact"]
    assert "from_bytes" in cuda["speed"]["float32"]["exact"]


def test_auto_avoids_a_device_that_is_slow(start_faulty):
    before = start_faulty(cuda_min_bytes=0)
    before.fault.say("slow")
    before.stop()
    daemon = start_faulty(cuda_min_bytes=0)
    cpu, cuda = devices(daemon)
    for dtype in REALS + INTEGERS:
        for speed in cuda["speed"][dtype].values():
            assert speed["fixed_ns"] >= SLOW_NS
    daemon.fault.say("")
    assert (ask(daemon, 3), ask(daemon, LONG)) == ("cpu", "cpu")
    assert daemon.dot({"a": [1], "b": [2], "device": "cuda"}).ok()["device"] == "cuda:0"


@pytest.mark.every_build
def test_a_size_that_the_operator_gives_decides_alone(start_faulty):
    daemon = start_faulty(cuda_min_bytes=LONG * 16)
    assert all("speed" not in device for device in devices(daemon))
    assert (ask(daemon, LONG - 1), ask(daemon, LONG)) == ("cpu", "cuda:0")


def test_without_a_choice_nothing_is_measured(start_daemon):
    (cpu,) = devices(start_daemon(cuda="off"))
    assert "speed" not in cpu
