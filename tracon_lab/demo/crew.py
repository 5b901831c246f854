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

"""Worker processes, which perform a list of tasks; results are kept as they come."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import pathlib
import queue
import signal
import subprocess
import sys
import threading
import time
from typing import Any, Callable, Iterable, Iterator

from tracon_lab.demo import arms
from tracon_lab.demo import settings as settings_module
from tracon_watcher import errors

_MEMORY = '/dev/shm'


class WorkerFailed(errors.TraconError):
    """A process with a Nova in it has ended too early; the text says where its log is."""


@dataclasses.dataclass(frozen=True)
class Task:
    """One arm of one seed.

    :param audit: whether a VM changes its behaviour afterwards and an audit runs
    """

    seed: int
    arm: str
    audit: bool = False

    @property
    def name(self) -> str:
        """A name that is fit for a file."""
        return f'seed-{self.seed:04}-{self.arm.replace(", ", "-")}'


class Results:
    """Results in a folder, one JSON file a task, so that many seeds may run in sittings.

    :param fingerprint: of the settings; results of others are not taken for theirs
    """

    def __init__(self, folder: pathlib.Path, fingerprint: str) -> None:
        self._folder = folder
        self._fingerprint = fingerprint

    def find(self, task: Task) -> dict[str, Any] | None:
        """Return the result of a task, None when there is none yet."""
        try:
            content = json.loads(self._path(task).read_text(encoding='utf-8'))
            result: dict[str, Any] = content['result']
            if content['fingerprint'] != self._fingerprint or (
                    task.audit and 'audit' not in result):
                return None
        except (OSError, ValueError, KeyError, TypeError):
            # Not there, or cut off when it was written: the arm is simply run again.
            return None
        return result

    def keep(self, task: Task, result: dict[str, Any]) -> None:
        """Write the result of a task."""
        path = self._path(task)
        scratch = path.with_suffix('.part')
        scratch.write_text(json.dumps({'fingerprint': self._fingerprint, 'result': result},
                                      indent=1), encoding='utf-8')
        scratch.replace(path)

    def _path(self, task: Task) -> pathlib.Path:
        return self._folder / f'{task.name}.json'


def tasks(seeds: Iterable[int], audits: Iterable[int], audited: str) -> list[Task]:
    """Return the tasks, seed by seed, the longest first.

    :param audits: seeds with an audit
    :param audited: the arm that it follows
    """
    chosen = set(audits)
    return [Task(seed, name, name == audited and seed in chosen) for seed in seeds
            for name in sorted(arms.ARMS, key=lambda name: name != audited)]


class _Worker:
    def __init__(self, number: int, folder: pathlib.Path,
                 settings: settings_module.Settings) -> None:
        self._log = folder / f'nova-{number}.log'
        environment = {key: value for key, value in os.environ.items()
                       if key.lower() not in ('http_proxy', 'https_proxy', 'all_proxy')}
        # The order of sets decides here and there in Nova and Watcher; it must be the same again.
        environment['PYTHONHASHSEED'] = '0'
        if os.access(_MEMORY, os.W_OK):
            # Nova's databases live as long as the process; no disk has to hear of each commit.
            environment['TMPDIR'] = _MEMORY
        with self._log.open('a', encoding='utf-8') as stderr:
            self._process = subprocess.Popen(
                [sys.executable, '-m', 'tracon_lab.demo.worker'], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=stderr, text=True, env=environment,
                start_new_session=True)
        self._send(settings.to_document())
        self.listen(lambda *_progress: None)

    def perform(self, task: Task, progress: Callable[[int, int], None]) -> dict[str, Any]:
        self._send(dataclasses.asdict(task))
        return self.listen(progress)

    def listen(self, progress: Callable[[int, int], None]) -> dict[str, Any]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            answer = json.loads(line)
            if answer['say'] == 'progress':
                progress(answer['done'], answer['of'])
            elif answer['say'] == 'error':
                raise WorkerFailed(f'{answer["text"]}; see {self._log}')
            else:
                result: dict[str, Any] = answer.get('result', {})
                return result
        raise WorkerFailed(f'the process with Nova in it ended with code '
                           f'{self._process.wait()}; see {self._log}')

    def close(self) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            # Its forks are in the session that was started for it, and nothing else is.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
        self._process.stdout.close()

    def _send(self, content: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self._process.stdin.write(json.dumps(content) + '\n')
            self._process.stdin.flush()


def run(listed: list[Task], settings: settings_module.Settings, folder: pathlib.Path,
        processes: int, report: Callable[[Task, float], None]) -> Iterator[
            tuple[Task, dict[str, Any]]]:
    """Perform tasks in several processes and yield results as they come.

    :param folder: for the processes' logs
    :param report: called with a task and the share of it that is done, from several threads
    :raises WorkerFailed: when a process ends too early; the others are stopped
    """
    waiting: queue.Queue[Task] = queue.Queue()
    for task in listed:
        waiting.put(task)
    done: queue.Queue[tuple[Task, dict[str, Any]] | BaseException | None] = queue.Queue()
    stop = threading.Event()
    threads = [threading.Thread(target=_serve, daemon=True, args=(
        number, waiting, done, stop, settings, folder, report))
        for number in range(1, min(processes, len(listed)) + 1)]
    for thread in threads:
        thread.start()
        # Two that read the same files from disk at once take longer than one after the other.
        time.sleep(0.2)
    try:
        busy = len(threads)
        while busy:
            found = done.get()
            if found is None:
                busy -= 1
            elif isinstance(found, BaseException):
                raise found
            else:
                yield found
    finally:
        stop.set()
        for thread in threads:
            thread.join(30)


def _serve(number: int, waiting: queue.Queue[Task], done: queue.Queue[Any],
           stop: threading.Event, settings: settings_module.Settings, folder: pathlib.Path,
           report: Callable[[Task, float], None]) -> None:
    worker: _Worker | None = None

    def progress(task: Task, count: int, of: int) -> None:
        if stop.is_set():
            raise WorkerFailed('stopped')
        report(task, count / of)

    try:
        while not stop.is_set():
            try:
                task = waiting.get_nowait()
            except queue.Empty:
                break
            report(task, 0.0)
            if worker is None:
                worker = _Worker(number, folder, settings)
            result = worker.perform(task, lambda count, of, task=task: progress(task, count, of))
            done.put((task, result))
    except BaseException as error:
        done.put(error)
    finally:
        if worker is not None:
            worker.close()
        done.put(None)
