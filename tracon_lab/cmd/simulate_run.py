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

"""Runs cases of the simulator in several processes, and shows how far they are."""

from __future__ import annotations

import concurrent.futures
import contextlib
import multiprocessing
import sys
from typing import Any, Iterator, Sequence

import threadpoolctl

from tracon_lab.simulator import experiment
from tracon_watcher import progress as progresses

_POLL_SECONDS = 0.5
#: Share of each case that is done, seen by all processes.
_shares: Any = None


def run(cases: Sequence[experiment.Case], processes: int) -> list[experiment.Result]:
    """Return the result of each case, in their order; errors of cases are raised here.

    The results are the same for any number of processes.
    """
    shown = progresses.Progress(sum(case.weight for case in cases) or 1.0)
    if processes == 1 or len(cases) == 1:
        results = []
        for index, case in enumerate(cases):
            with _one_thread():
                results.append(experiment.run(case, _Report(shown, index, case)))
            _Report(shown, index, case)(1.0)
        return results
    context = multiprocessing.get_context('spawn')
    shares = context.Array('d', len(cases))
    with concurrent.futures.ProcessPoolExecutor(
            min(processes, len(cases)), context, _begin, (shares,)) as pool:
        # Those that take longest first, or one process would end with them alone.
        order = sorted(range(len(cases)), key=lambda index: -cases[index].weight)
        futures = {index: pool.submit(_work, index, cases[index]) for index in order}
        waiting = set(futures.values())
        # Only of those that move: thousands of cases would keep this process busy.
        moving, reported = set(order), [0.0] * len(cases)
        try:
            while waiting:
                done, waiting = concurrent.futures.wait(
                    waiting, _POLL_SECONDS, concurrent.futures.FIRST_EXCEPTION)
                for index in list(moving):
                    share = 1.0 if futures[index].done() else shares[index]
                    if share != reported[index]:
                        reported[index] = share
                        _Report(shown, index, cases[index])(share)
                    if share == 1.0 and futures[index].done():
                        moving.discard(index)
                for future in done:
                    future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        return [futures[index].result() for index in range(len(cases))]


class _Report:
    """Progress of one case. Cases may have the same name, so they are told apart by number."""

    def __init__(self, shown: progresses.Progress, index: int, case: experiment.Case) -> None:
        self._shown, self._weight = shown, case.weight
        self._task = _Task(index, case.name)

    def __call__(self, share: float) -> None:
        self._shown.report(self._task, share, self._weight)


class _Task(tuple[int, str]):
    """A case by number and name."""

    def __new__(cls, index: int, name: str) -> _Task:
        return super().__new__(cls, (index, name))

    @property
    def name(self) -> str:
        return self[1]


def _begin(shares: Any) -> None:
    global _shares
    _shares = shares


def _work(index: int, case: experiment.Case) -> experiment.Result:
    def tell(share: float) -> None:
        _shares[index] = share
    with _one_thread():
        return experiment.run(case, tell)


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    # The matrices are small: threads of linear algebra only wait for each other.
    with threadpoolctl.threadpool_limits(1):
        yield
    sys.stderr.flush()
