"""What each account may use: connections, contexts, utterances being spoken, characters a minute.

Pure. An account is the holder of a key or an address; what it uses in other gateway processes is told by `others`
and counts as well. An account that uses nothing may be forgotten; that never buys a minute that was spent.
"""

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace

REMEMBERED = 10_000  # accounts; addresses are without number
MINUTE_S = 60.0


@dataclass(frozen=True, slots=True)
class Quota:
    """None: as many as the server takes."""

    connections: int | None = None
    contexts: int | None = None
    utterances: int | None = None
    characters_per_minute: int | None = None

    def __post_init__(self) -> None:
        for each in fields(self):
            bound = getattr(self, each.name)
            if bound is not None and bound < 1:
                raise ValueError(f"{each.name} must be at least 1, or None for no bound, not {bound}")


@dataclass(frozen=True, slots=True)
class Exceeded:
    """Which quota, in words, and when there is room again."""

    message: str
    retry_after_s: float


@dataclass(frozen=True, slots=True)
class Usage:
    """What an account uses now, and the characters it has sent so far."""

    connections: int = 0
    contexts: int = 0
    utterances: int = 0
    characters: int = 0


@dataclass(slots=True)
class _Account:
    quota: Quota
    mine: Usage = Usage()
    elsewhere: Usage = Usage()
    compared: bool = False  # whether the characters of `elsewhere` are a sum to go on from
    characters: float = 0.0  # that may be sent now, a minute's worth at most; negative: debt, or sent without a rate
    filled_at: float = 0.0

    def fill(self, now: float) -> None:
        if (rate := self.quota.characters_per_minute) is not None:
            self.characters = min(rate, self.characters + (now - self.filled_at) * rate / MINUTE_S)
        self.filled_at = now

    def change(self, quota: Quota, now: float) -> None:
        """Another quota. A rate where there was none begins with a full minute, less what was sent elsewhere."""
        if self.quota.characters_per_minute is not None:
            self.fill(now)
        elif (rate := quota.characters_per_minute) is not None:
            self.characters = max(0.0, rate + self.characters)
        self.quota = quota
        if quota.characters_per_minute is None:
            self.characters, self.filled_at = 0.0, now
        else:
            self.fill(now)

    def told(self, usage: Usage, now: float) -> None:
        """What is used elsewhere. The first sum goes back to whenever, and nobody knows how much of it is of this
        minute: it empties the minute and makes no debt."""
        sent: float = max(0, usage.characters - (self.elsewhere.characters if self.compared else 0))
        is_history, self.elsewhere, self.compared = not self.compared, usage, True
        if not sent:
            return
        has_rate = self.quota.characters_per_minute is not None
        if not has_rate and now - self.filled_at >= MINUTE_S:
            self.characters = 0.0  # nothing to fill by, so what is older than a minute goes; the rest is for `change`
        self.fill(now)
        if is_history and has_rate:
            sent = min(sent, max(0.0, self.characters))
        self.characters -= sent

    def empty_at(self, now: float) -> float:
        """When its minute was empty, or would have been; never later than now."""
        rate = self.quota.characters_per_minute
        return -math.inf if rate is None else min(now, self.filled_at - self.characters * MINUTE_S / rate)

    @property
    def is_idle(self) -> bool:
        """Uses nothing, here or elsewhere."""
        return not any(each.connections or each.contexts or each.utterances for each in (self.mine, self.elsewhere))

    @property
    def used(self) -> Usage:
        """Here and elsewhere."""
        mine, other = self.mine, self.elsewhere
        return Usage(
            mine.connections + other.connections,
            mine.contexts + other.contexts,
            mine.utterances + other.utterances,
            mine.characters + other.characters,
        )


@dataclass(slots=True)
class Quotas:
    """The accounts of one gateway process. Names that were never declared have no quota."""

    _accounts: dict[str, _Account] = field(default_factory=dict)
    _changed: set[str] = field(default_factory=set)
    on_change: Callable[[], None] = lambda: None  # called when `take_changes` has something again
    _empty_at: float = -math.inf  # when the minute of one that was forgotten was empty

    def declare(self, account: str, quota: Quota, now: float) -> None:
        """What this account may use; said by whoever lets it in."""
        known = self._accounts.get(account)
        if known is None:
            self._forget(now)
            self._accounts[account] = self._fresh(quota, now)
        elif known.quota != quota:
            known.change(quota, now)

    # --- counts ----------------------------------------------------------------------------------------------------

    def connect(self, account: str, now: float) -> Exceeded | None:
        known = self._known(account, now)
        if _full(known.used.connections, known.quota.connections):
            return Exceeded(f"this account may have {known.quota.connections} connections", 2.0)
        self._add(account, known, connections=1)
        return None

    def disconnect(self, account: str, now: float) -> None:
        self._add(account, self._known(account, now), connections=-1)

    def open_context(self, account: str, now: float) -> Exceeded | None:
        known = self._known(account, now)
        if _full(known.used.contexts, known.quota.contexts):
            return Exceeded(f"this account may have {known.quota.contexts} live contexts", 1.0)
        self._add(account, known, contexts=1)
        return None

    def close_context(self, account: str, now: float) -> None:
        self._add(account, self._known(account, now), contexts=-1)

    def may_speak(self, account: str, now: float, *, waiting: int = 0) -> Exceeded | None:
        """Whether one more utterance may be spoken; `begin_utterance` counts it. `waiting`: those that go before it."""
        known = self._known(account, now)
        if _full(known.used.utterances + waiting, known.quota.utterances):
            return Exceeded(f"this account may have {known.quota.utterances} utterances spoken at once", 1.0)
        return None

    def begin_utterance(self, account: str, now: float) -> None:
        self._add(account, self._known(account, now), utterances=1)

    def end_utterance(self, account: str, now: float) -> None:
        self._add(account, self._known(account, now), utterances=-1)

    def characters(self, account: str, count: int, now: float) -> Exceeded | None:
        """Takes so many characters out of the account's minute. One text longer than a whole minute's worth is taken
        when the minute is full, and paid off afterwards: it would never fit."""
        known = self._known(account, now)
        rate = known.quota.characters_per_minute
        if rate is not None:
            known.fill(now)
            missing = min(count, rate) - known.characters
            if missing > 1e-6:
                return Exceeded(f"this account may send {rate} characters a minute", missing * MINUTE_S / rate)
            known.characters -= count
        self._add(account, known, characters=count)
        return None

    # --- several processes -----------------------------------------------------------------------------------------

    def take_changes(self) -> dict[str, Usage]:
        """The usage here of every account that changed since this was last asked."""
        changed, self._changed = self._changed, set()
        return {name: self._accounts[name].mine for name in changed if name in self._accounts}

    def tell_all_again(self) -> None:
        """Every account counts as changed: whoever asks is new, and may tell us of ourselves as of someone else."""
        for known in self._accounts.values():
            known.compared = False
        self._changed.update(self._accounts)
        if self._changed:
            self.on_change()

    def others(self, account: str, usage: Usage, now: float) -> None:
        """What an account uses in all other processes; characters are taken out of its minute here as well."""
        self._known(account, now).told(usage, now)

    def usage(self, account: str) -> Usage:
        """Here and elsewhere."""
        known = self._accounts.get(account)
        return known.used if known else Usage()

    # --- its parts -------------------------------------------------------------------------------------------------

    def _known(self, account: str, now: float) -> _Account:
        if account not in self._accounts:
            self.declare(account, Quota(), now)
        return self._accounts[account]

    def _add(self, account: str, known: _Account, **changes: int) -> None:
        known.mine = replace(known.mine, **{name: getattr(known.mine, name) + by for name, by in changes.items()})
        was_told = not self._changed
        self._changed.add(account)
        if was_told:
            self.on_change()

    def _fresh(self, quota: Quota, now: float) -> _Account:
        """One that is not known, or not any more: its minute is no fuller than that of one that was forgotten."""
        rate = quota.characters_per_minute
        if rate is None:
            return _Account(quota, filled_at=now)
        return _Account(quota, characters=min(float(rate), (now - self._empty_at) * rate / MINUTE_S), filled_at=now)

    def _forget(self, now: float) -> None:
        """Makes room: of the accounts that use nothing those whose minutes are the fullest."""
        if len(self._accounts) < REMEMBERED:
            return
        idle = [(known.empty_at(now), name) for name, known in self._accounts.items() if known.is_idle]
        for empty_at, name in heapq.nsmallest(REMEMBERED // 10, idle, key=lambda each: each[0]):
            self._empty_at = max(self._empty_at, empty_at)
            del self._accounts[name]
            self._changed.discard(name)


def _full(used: int, bound: int | None) -> bool:
    return bound is not None and used >= bound
