import asyncio
from pathlib import Path

from running import eventually
from voxgate.admission.vram import Monitor, MonitorSettings
from voxgate.gateway.gauge import Distant, Gauge, Pools


def test_a_gateway_is_told_what_the_pools_of_all_the_others_hold_and_of_none_that_is_gone():
    pools = Pools()
    pools.report(1, {"GPU-1": 5})
    pools.report(2, {"GPU-1": 7, "GPU-2": 1})
    pools.report(3, {"GPU-1": 2})

    assert pools.others(1) == {"GPU-1": 9, "GPU-2": 1}
    pools.leave(2)
    assert pools.others(1) == {"GPU-1": 2}


async def test_pools_are_known_to_the_other_gateway_until_theirs_is_gone(tmp_path: Path):
    settings = MonitorSettings(every_s=0.01, stale_s=0.2)
    gauge = Gauge(tmp_path / "gauge", Monitor(settings))
    one, other = (Distant(gauge.path, settings) for _ in range(2))
    tasks = [asyncio.create_task(each.run()) for each in (one, other)]
    gauge.start()
    try:
        assert await asyncio.to_thread(one.first_readings) == {}  # no GPU here, and no error of ours
        other.exchange({"GPU-1": 5})
        await eventually("told", lambda: one.exchange({}) == {"GPU-1": 5})

        tasks[1].cancel()
        await eventually("gone", lambda: one.exchange({}) == {})
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        gauge.close()


async def test_what_cannot_be_read_costs_that_gateway_its_connection_and_the_others_nothing(tmp_path: Path):
    settings = MonitorSettings(every_s=0.01)
    gauge = Gauge(tmp_path / "gauge", Monitor(settings))
    gauge.start()
    good = Distant(gauge.path, settings)
    task = asyncio.create_task(good.run())
    try:
        reader, writer = await asyncio.open_unix_connection(gauge.path)
        await reader.readline()
        writer.write(b"nonsense\n")
        assert await reader.read() == b""
        writer.close()
        assert await asyncio.to_thread(good.first_readings) == {}
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        gauge.close()
