"""The bad days that admission is made for, each as a run of a modelled house: the tests judge them, the figures show
them (`scripts/simulate`)."""

from collections.abc import Callable

from sim.engines import Batch
from sim.house import House
from voxgate.admission.controller import Limits
from voxgate.admission.limit import LimitSettings

LIMIT_STREAMS = 250  # two cores over what engine and libopus alone cost
PLATEAU = 190  # listeners: 0.76 of that
PER_S = 13.5  # arrivals that make as many: an utterance lasts 14 s
STEP = 20.0, 50.0  # three times the load, from and to
CROWD_AT, CROWD = 10.0, 180
SLOTS = 16

# Of admission only the forecast is left, as `voxgate bench capacity` has it: the limit is what is looked for.
UNLIMITED = Limits(utterances=100_000, limit=LimitSettings(initial=100_000, floor=100_000, ceiling=100_000))


def plateau(listeners: int, *, seed: int = 0, forecast: bool = True) -> House:
    """Closed listeners for a minute, on a machine that is not quite its own."""
    house = House(seed=seed, limits=UNLIMITED, forecast=forecast)
    house.stalls(1.0)
    house.listeners(listeners, ramp_s=8.0)
    house.run(68.0)
    return house


def step(seed: int = 0) -> House:
    """The plateau's load, three times as much for half a minute, then a third of it."""
    house, (begin, end) = House(seed=seed), STEP
    house.arrivals(PER_S, begin=0.0, end=begin)
    house.arrivals(3 * PER_S, begin=begin, end=end)
    house.arrivals(PER_S / 3, begin=end, end=end + 15.0)
    house.run(end + 15.0)
    return house


def crowd(seed: int = 0, *, forecast: bool = True) -> House:
    """Twenty listen, then 180 come within a second."""
    house = House(seed=seed, forecast=forecast)
    house.listeners(20, ramp_s=4.0)
    house.crowd(CROWD, begin=CROWD_AT, within_s=1.0)
    house.run(CROWD_AT + 30.0)
    return house


LEAK_FROM, LEAK_TO = 10.0, 60.0  # what has leaked is given back by then


def leak(seed: int = 0) -> House:
    """The memory of a GPU fills slowly, whatever is spoken; then it is given back."""
    return _on_gpu(
        seed, lambda house, now: 0.55 + (0.45 * (now - LEAK_FROM) / 40.0 if LEAK_FROM <= now < LEAK_TO else 0.0)
    )


FAILS, FLAPS = (10.0, 50.0), (90.0, 130.0)


def flapping(seed: int = 0) -> House:
    """A GPU whose engine fails for a while, whose readings jump later, and whose listeners are impatient."""

    def pressure(house: House, now: float) -> float | None:
        house.engine.broken = FAILS[0] <= now < FAILS[1]
        if not FLAPS[0] <= now < FLAPS[1]:
            return 0.3
        return house.chance.choice([0.3, 0.85, 0.99, None])

    return _on_gpu(seed, pressure, until=160.0)


def _on_gpu(seed: int, memory: Callable[[House, float], float | None], until: float = 90.0) -> House:
    house = House(seed=seed, engine=Batch, max_slots=SLOTS)

    def pressure(now: float) -> float | None:
        read = memory(house, now)
        assert isinstance(house.engine, Batch)
        return None if read is None else min(1.0, read + 0.01 * house.engine.slots)

    house.pressure = pressure
    house.arrivals(2.0, begin=0.0, end=until, patience_s=lambda: house.chance.choice([0.02, 3.0, 3.0]))
    house.run(until)
    return house


GREEDY, GREEDY_FROM = "greedy", 15.0


def greedy(seed: int = 0, *, greed: int = 300) -> House:
    """Six modest accounts with ten listeners each, and one that asks for 300."""
    house = House(seed=seed)
    for number in range(6):
        house.listeners(10, ramp_s=8.0, account=f"modest {number}", first_at=number)
    if greed:
        house.listeners(greed, ramp_s=4.0, account=GREEDY, first_at=GREEDY_FROM)
    house.run(60.0)
    return house


def many_accounts(seed: int = 0) -> House:
    """A house as full as that, with listeners who are all modest."""
    house = House(seed=seed)
    for number in range(19):
        house.listeners(10, ramp_s=8.0, account=f"modest {number}", first_at=number / 4)
    house.run(60.0)
    return house


def mid_conversation(seed: int = 0) -> House:
    """Twenty listen, and 150 who have been spoken to before are to be answered within a second."""
    house = House(seed=seed)
    house.listeners(20, ramp_s=4.0)
    house.crowd(150, begin=CROWD_AT, within_s=1.0, newcomers=False)
    house.run(CROWD_AT + 30.0)
    return house
