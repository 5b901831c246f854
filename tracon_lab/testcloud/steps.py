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

"""Steps that need each other, several at a time."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import time
from typing import Callable, Sequence


@dataclasses.dataclass(frozen=True)
class Step:
    """Something to be done once.

    :param after: names of the steps it needs
    :param weight: how long it takes, beside the others
    """

    name: str
    action: Callable[[], object]
    after: tuple[str, ...] = ()
    weight: float = 1.0


def perform(steps: Sequence[Step], workers: int,
            done: Callable[[Step, float], None] = lambda step, seconds: None) -> None:
    """Do all steps, each as soon as those it needs are done, in the given order otherwise.

    After a failure nothing more is begun, what runs is waited for, and the failure is raised.

    :param workers: how many at a time
    :param done: called with each step that is done, and the seconds it took
    """
    names = [step.name for step in steps]
    known = set(names)
    for step in steps:
        if missing := set(step.after) - known:
            raise ValueError(f'{step.name} needs {sorted(missing)}, which is no step')
    finished: set[str] = set()
    waiting = list(steps)
    running: dict[concurrent.futures.Future[float], Step] = {}
    failure: BaseException | None = None
    with concurrent.futures.ThreadPoolExecutor(workers) as pool:
        while running or (waiting and failure is None):
            for step in list(waiting):
                if failure is None and len(running) < workers and finished.issuperset(step.after):
                    waiting.remove(step)
                    running[pool.submit(_timed, step)] = step
            if not running:
                raise ValueError(f'{[step.name for step in waiting]} need each other')
            ended, _rest = concurrent.futures.wait(
                running, return_when=concurrent.futures.FIRST_COMPLETED)
            for one in ended:
                step = running.pop(one)
                error = one.exception()
                if error is not None:
                    failure = failure or error
                    continue
                finished.add(step.name)
                done(step, one.result())
    if failure is not None:
        raise failure


def _timed(step: Step) -> float:
    begin = time.monotonic()
    step.action()
    return time.monotonic() - begin
