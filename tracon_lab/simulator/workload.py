# Licensed under the Apache License, Version 2.0 (the "License"); you may
# not use this file except in compliance with the License. You may obtain
# a copy of the License at
#
#      http://www.apache.org/licenses/LICENSE-2.0
#
# Unless required by applicable law or agreed to in writing, software
# distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
# WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
# License for the specific language governing permissions and limitations
# under the License.

"""Which tasks come, and when."""

from __future__ import annotations

import dataclasses
import math
from typing import Iterator, Protocol, Sequence

import numpy as np

from tracon_watcher.characteristics import FloatArray, IntArray
from tracon_watcher import errors
from tracon_watcher import tie_breaking

#: Means of the ranks of I/O intensity (Chiang & Huang, TRACON, SC'11, §4.1), of eight classes.
MIXES = {'light': 2.5, 'medium': 4.0, 'heavy': 5.5}
UNIFORM = 'uniform'
#: Not published; a number of ranks.
SIGMA = 1.5
_RANKS = 8
_LEAST_SIGMA = 0.01
_CHUNK = 1 << 16


@dataclasses.dataclass(frozen=True)
class Chunk:
    """Tasks that follow each other.

    :param times: seconds since the start, not falling
    :param classes: index of each task's class
    :param work: of each task, in runs of its class: 2 takes twice as long alone; None: 1 each
    """

    times: list[float]
    classes: list[int]
    work: list[float] | None = None


class Source(Protocol):
    """Where tasks come from."""

    def chunks(self) -> Iterator[Chunk]:
        """Yield all tasks in the order of their arrival."""
        ...


def mix(name: str, classes: int, sigma: float = SIGMA) -> FloatArray:
    """Return the share of each class among the tasks, (c,), the least I/O intensive first.

    A Gaussian over the ranks. With other than eight classes, ranks are stretched to as many.

    :param name: one of :data:`MIXES`, or ``uniform``
    :param sigma: standard deviation in ranks of eight
    """
    if name == UNIFORM:
        return np.full(classes, 1 / classes)
    if name not in MIXES:
        raise errors.InvalidOption('mix', name,
                                   f'expected one of {", ".join((*MIXES, UNIFORM))}')
    if not sigma >= _LEAST_SIGMA or not math.isfinite(sigma):
        raise errors.InvalidOption('sigma', sigma,
                                   f'a standard deviation of {_LEAST_SIGMA} or more')
    ranks = np.linspace(1, _RANKS, classes) if classes > 1 else np.array([MIXES[name]])
    exponent = -0.5 * ((ranks - MIXES[name]) / sigma) ** 2
    weight = np.exp(exponent - exponent.max())
    # So that a draw between two classes falls on the same one on every CPU.
    share = tie_breaking.rounded(weight / weight.sum())
    return np.asarray(share / math.fsum(share))


def draw(rng: np.random.Generator, shares: FloatArray, count: int) -> IntArray:
    """Draw the classes of ``count`` tasks."""
    return np.asarray(rng.choice(len(shares), count, p=shares), dtype=np.intp)


class Poisson:
    """Tasks that come at random, independently of each other.

    :param rate: tasks a second
    :param shares: (c,) of the classes
    :param seed: of times and classes; the same seed gives the same tasks
    :param seconds: how long they come
    """

    def __init__(self, rate: float, shares: FloatArray, seed: Sequence[int],
                 seconds: float) -> None:
        if not rate > 0 or not math.isfinite(rate):
            raise errors.InvalidOption('rate', rate, 'tasks must come at a rate above 0')
        if not seconds > 0 or not math.isfinite(seconds):
            raise errors.InvalidOption('hours', seconds / 3600, 'a time above 0')
        self._rate = rate
        self._shares = shares
        self._seed = list(seed)
        self._seconds = seconds

    def chunks(self) -> Iterator[Chunk]:
        """Yield all tasks in the order of their arrival."""
        times, classes = (np.random.default_rng([*self._seed, stream]) for stream in range(2))
        now = 0.0
        while now < self._seconds:
            moments = now + np.cumsum(times.exponential(1 / self._rate, _CHUNK))
            now = float(moments[-1])
            kinds = draw(classes, self._shares, _CHUNK)
            inside = int(np.searchsorted(moments, self._seconds, side='right'))
            yield Chunk(moments[:inside].tolist(), kinds[:inside].tolist())


class Listed:
    """Tasks that are known beforehand.

    :param times: (n,) seconds, not falling
    :param classes: (n,)
    :param work: (n,) runs of the class
    """

    def __init__(self, times: Sequence[float], classes: Sequence[int],
                 work: Sequence[float] | None = None) -> None:
        self._chunk = Chunk(list(times), list(classes), None if work is None else list(work))

    def chunks(self) -> Iterator[Chunk]:
        """Yield all tasks in the order of their arrival."""
        yield self._chunk
