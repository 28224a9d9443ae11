"""What each account may use: connections, contexts, utterances being spoken, characters a minute.

Pure. An account is the holder of a key or an address; what it uses in other gateway processes is told by `others`
and counts as well. An account that uses nothing is forgotten once its minute is full again.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

REMEMBERED = 10_000  # accounts; addresses are without number
MINUTE_S = 60.0


@dataclass(frozen=True, slots=True)
class Quota:
    """None: as many as the server takes."""

    connections: int | None = None
    contexts: int | None = None
    utterances: int | None = None
    characters_per_minute: int | None = None


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
    characters: float = 0.0  # that may be sent now; a minute's worth at most
    filled_at: float = 0.0

    def fill(self, now: float) -> None:
        if (rate := self.quota.characters_per_minute) is not None:
            self.characters = min(rate, self.characters + (now - self.filled_at) * rate / MINUTE_S)
        self.filled_at = now

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
    active_accounts: int = 0  # that have an utterance being spoken here
    on_change: Callable[[], None] = lambda: None  # called when `take_changes` has something again

    def declare(self, account: str, quota: Quota, now: float) -> None:
        """What this account may use; said by whoever lets it in."""
        known = self._accounts.get(account)
        if known is None:
            self._forget(now)
            self._accounts[account] = _Account(quota, characters=quota.characters_per_minute or 0.0, filled_at=now)
        elif known.quota != quota:
            known.quota = quota

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

    def may_speak(self, account: str, now: float) -> Exceeded | None:
        """Whether one more utterance may be spoken; `begin_utterance` counts it."""
        known = self._known(account, now)
        if _full(known.used.utterances, known.quota.utterances):
            return Exceeded(f"this account may have {known.quota.utterances} utterances spoken at once", 1.0)
        return None

    def begin_utterance(self, account: str, now: float) -> None:
        known = self._known(account, now)
        self.active_accounts += not known.mine.utterances
        self._add(account, known, utterances=1)

    def end_utterance(self, account: str, now: float) -> None:
        known = self._known(account, now)
        self._add(account, known, utterances=-1)
        self.active_accounts -= not known.mine.utterances

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

    def over_fair_share(self, account: str, limit: int, now: float) -> bool:
        """Whether the account uses its equal share of `limit` utterances, all active accounts counted."""
        known = self._known(account, now)
        sharing = self.active_accounts + (not known.mine.utterances)
        return sharing > 1 and known.mine.utterances >= limit / sharing

    # --- several processes -----------------------------------------------------------------------------------------

    def take_changes(self) -> dict[str, Usage]:
        """The usage here of every account that changed since this was last asked."""
        changed, self._changed = self._changed, set()
        return {name: self._accounts[name].mine for name in changed if name in self._accounts}

    def tell_all_again(self) -> None:
        """Every account counts as changed: whoever asks is new."""
        self._changed.update(self._accounts)
        if self._changed:
            self.on_change()

    def others(self, account: str, usage: Usage, now: float) -> None:
        """What an account uses in all other processes; characters are taken out of its minute here as well."""
        known = self._known(account, now)
        known.fill(now)
        known.characters -= max(0, usage.characters - known.elsewhere.characters)
        known.elsewhere = usage

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

    def _forget(self, now: float) -> None:
        """Makes room: of the accounts that use nothing those that were known the longest, their minutes full or not."""
        if len(self._accounts) < REMEMBERED:
            return
        idle = [
            name
            for name, known in self._accounts.items()
            if (known.used.connections, known.used.contexts, known.used.utterances) == (0, 0, 0)
        ]
        for name in idle[: REMEMBERED // 10]:
            del self._accounts[name]
            self._changed.discard(name)


def _full(used: int, bound: int | None) -> bool:
    return bound is not None and used >= bound
