"""What fails in a simulation, and when; called on the driver's thread."""

from collections import Counter
from collections.abc import Callable, Sequence
from random import Random

from tests.simulation.kernel import State
from tests.simulation.network import Faults
from tests.simulation.replica import Replica, World
from tests.simulation.stream_link import STREAM, StreamFaults

# Faults of the background, of which each seed takes a part.
_CALM, _STORM = 0.002, 0.06


class FaultInjector:
    """Lets things fail at random, each seed other ones and more or less often.

    counts: how often each kind has happened.
    """

    def __init__(self, world: World, replicas: Sequence[Replica], seed: object) -> None:
        self.counts = Counter[str]()
        self._world, self._replicas = world, replicas
        self._random = Random(f"{seed} faults")
        kinds: list[Callable[[], None]] = [
            self._kill,
            self._kill_and_lose,
            self._terminate,
            self._pause,
            self._cut_from_stream,
            self._cut_from_neighbour,
            self._cut_from_clients,
            self._storm,
            self._stop_stream,
            self._mute,
            self._deafen,
            self._set_apart,
            self._stall,
        ]
        some = self._random.sample(kinds, self._random.randint(2, len(kinds)))
        self._kinds = [(kind, self._random.uniform(0.2, 1.0)) for kind in some]
        self._interval = self._random.choice([1.0, 2.0, 4.0])
        self._set_background(_CALM)

    def happen(self, seconds: float) -> None:
        """Let faults happen for some time."""
        kernel = self._world.kernel
        end = kernel.now + seconds
        while kernel.now < end:
            kernel.sleep(min(self._random.expovariate(1 / self._interval), end - kernel.now))
            kind = self._random.choices(*zip(*self._kinds, strict=True))[0]
            self.counts[kind.__name__.strip("_")] += 1
            kernel.note("fault", kind.__name__)
            kind()

    def end(self) -> None:
        """Mend everything: all replicas run, and everybody is heard."""
        self._world.network.faults, self._world.wire.faults = Faults(), StreamFaults()
        self._world.network.heal()
        self._world.wire.mute.clear()
        self._world.wire.deaf.clear()
        for one in self._replicas:
            if one.paused:
                one.resume()
        self._world.kernel.sleep(15.0)  # those that are about to start have started
        for one in self._replicas:
            if not one.runs:
                one.start()

    def _set_background(self, rate: float) -> None:
        network, wire = self._world.network.faults, self._world.wire.faults
        for faults in (network, wire):
            for name in vars(faults):
                # A seed has some kinds of these often, some seldom, and some never.
                setattr(faults, name, rate * self._random.choice([0.0, 0.0, 0.5, 1.0, 3.0]))
        network.slow_messages *= 5
        wire.slow *= 2

    def _some(self) -> Replica | None:
        """Return a replica that runs; most of the time it is one of several."""
        running = [one for one in self._replicas if one.runs and not one.paused]
        if len(running) < 2 and self._random.random() < 0.8:
            return None
        return self._random.choice(running) if running else None

    def _later(self, longest: float, what: Callable[[], None]) -> None:
        self._world.kernel.call_later(self._random.uniform(0.0, longest), what)

    def _kill(self, keep_data: bool = True) -> None:
        if one := self._some():
            one.kill()
            self._start_later(one, keep_data)

    def _kill_and_lose(self) -> None:
        self._kill(keep_data=False)

    def _terminate(self) -> None:
        if one := self._some():
            one.terminate()
            self._start_later(one, keep_data=True)

    def _start_later(self, one: Replica, keep_data: bool) -> None:
        skew = self._random.choice([0.0, 0.0, -3600.0, 7200.0])

        def start() -> None:
            if one.runs:  # it is still ending
                self._later(3.0, start)
            else:
                one.start(keep_data, skew)

        self._later(10.0, start)

    def _pause(self) -> None:
        if one := self._some():
            group = one.group
            one.pause()

            def resume() -> None:
                if one.group is group and one.paused:
                    one.resume()

            self._later(self._random.choice([1.0, 5.0, 25.0]), resume)

    def _cut(self, *pairs: tuple[str, str]) -> None:
        for pair in pairs:
            self._world.network.cut(*pair)
            if STREAM in pair:
                for one in self._replicas:
                    if one.name in pair and one.group is not None:
                        self._world.wire.cut_off(one.group)
        self._later(self._random.choice([1.0, 5.0, 25.0]), self._world.network.heal)

    def _cut_from_stream(self) -> None:
        if one := self._some():
            self._cut((one.name, STREAM))

    def _cut_from_neighbour(self) -> None:
        one, other = self._random.sample(self._replicas, 2)
        self._cut((one.name, other.name))

    def _cut_from_clients(self) -> None:
        if one := self._some():
            self._cut((one.name, "clients"))

    def _stop_stream(self) -> None:
        self._cut(*((one.name, STREAM) for one in self._replicas))

    def _mute(self) -> None:
        if one := self._some():
            self._add_for_a_while(self._world.wire.mute, one.name)

    def _deafen(self) -> None:
        if one := self._some():
            self._add_for_a_while(self._world.wire.deaf, one.name)

    def _set_apart(self) -> None:
        """Let a replica and the others not hear each other, though all of them reach the stream."""
        if one := self._some():
            wire, name = self._world.wire, one.name
            for names in (wire.mute, wire.deaf):
                names.add(name)

            def end() -> None:
                for names in (wire.mute, wire.deaf):
                    names.discard(name)

            self._later(self._random.choice([20.0, 60.0]), end)

    def _add_for_a_while(self, names: set[str], name: str) -> None:
        names.add(name)
        self._later(self._random.choice([4.0, 15.0]), lambda: names.discard(name))

    def _stall(self) -> None:
        """Let one thread of a replica be slow: the others go on."""
        if one := self._some():
            threads = [
                thread
                for thread in self._world.kernel.threads
                if thread.group is one.group and thread.state is not State.ENDED
            ]
            seconds = self._random.choice([0.1, 1.0, 5.0, 15.0])
            self._random.choice(threads).stall_seconds = self._random.uniform(0.0, seconds)

    def _storm(self) -> None:
        self._set_background(_STORM)
        self._later(8.0, lambda: self._set_background(_CALM))
