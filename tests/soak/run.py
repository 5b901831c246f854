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

"""Runs the soak: requests all the time, faults at their hours, and a record of what became of it.

An hour of simulated time is as many creations as a cloud has in an hour. What waits for data,
such as the interval of polls, is compressed less: by how much, :class:`Plan` says.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import threading
import time
from typing import Any, Callable, Sequence
import uuid

import numpy as np

from tests.soak import cloud as clouds
from tests.soak import orders
from tests.soak import world as worlds

#: Live migrations, and volumes attached, for each creation.
_MIGRATIONS, _ATTACHMENTS = 0.02, 0.05
#: Share of the newcomers that boot from a volume.
_ON_VOLUME = 0.2
#: Share of the hosts whose agents fall silent together.
_SILENT = 0.05
#: VMs that somebody forces to hot hosts each day, past the scheduler.
_FORCED = 5
_ALLOWED_LAG = 3.0
#: Seconds before an audit that are told of where a move is wrong.
_STORY = 300.0


@dataclasses.dataclass(frozen=True)
class Plan:
    """What is to be run.

    :param hosts: synthetic ones
    :param vms: small VMs for each host
    :param hours: of simulated time
    :param warm_up: hours of simulated time before these, at the end of which caches are as full
        as they become, and all services have been through most of what can go wrong
    :param creations: and as many deletions, an hour of simulated time
    :param minutes: that it is to take, but for the warm-up
    :param candidates: hosts that Placement offers for a request
    :param polling: seconds between two polls of agents; 60 in a cloud, so that what waits for data
        is compressed ``60 / polling`` times
    :param record: seconds between two rows of the record
    :param audit: seconds between two audits
    :param database: ``mariadb`` or ``postgresql``
    """

    hosts: int = 1000
    vms: int = 5
    hours: float = 168.0
    warm_up: float = 48.0
    creations: float = 300.0
    minutes: float = 60.0
    candidates: int = 250
    polling: float = 10.0
    record: float = 10.0
    audit: float = 60.0
    database: str = 'mariadb'

    @property
    def hour(self) -> float:
        """Seconds of an hour of simulated time."""
        return 60 * self.minutes / self.hours


@dataclasses.dataclass(frozen=True)
class Fault:
    """Something that goes wrong.

    :param begins: share of the run, or of the warm-up, after which it does
    :param lasts: share of the minutes that the run is to take
    """

    name: str
    begins: float
    lasts: float


#: The broker's first, since its memory rises for forty hours after it was started.
WARM_UP = (
    Fault('the broker is stopped', 0.10, 0.01),
    Fault('an engine is killed', 0.25, 0.02),
    Fault('the database is stopped', 0.40, 0.04),
    Fault('an engine is killed', 0.65, 0.02),
)
#: None in the first or the last tenth, which are compared.
FAULTS = (
    Fault('an engine is killed', 0.14, 0.02),
    Fault('agents are silent', 0.22, 0.10),
    Fault('the broker is stopped', 0.40, 0.01),
    Fault('agents are silent', 0.50, 0.10),
    Fault('the database is stopped', 0.66, 0.04),
    Fault('an engine is killed', 0.78, 0.02),
)


class Soak:
    """One run.

    :param say: is told in a line what happens
    """

    def __init__(self, plan: Plan, cloud: clouds.Cloud, say: Callable[[str], None]) -> None:
        self.plan = plan
        self.rows: list[dict[str, Any]] = []
        self.events: list[dict[str, Any]] = []
        #: What must not be: requests that were refused a quiet host, and moves that help no VM.
        self.wrong: list[str] = []
        #: What was known of moves among these.
        self.details: list[dict[str, Any]] = []
        #: Requests that could not be placed at all, and audits that failed, by why.
        self.failed: collections.Counter[str] = collections.Counter()
        self._cloud, self._world, self._say = cloud, cloud.world, say
        self._began = 0.0
        self._ended = threading.Event()
        self._lock = threading.Lock()
        self._answers: list[dict[str, Any]] = []
        self._totals: collections.Counter[str] = collections.Counter()
        self._left: Callable[[], Any] = lambda: None

    @property
    def share(self) -> float:
        """How much of all is over, the warm-up among it."""
        return (self.hour + self.plan.warm_up) / (self.plan.hours + self.plan.warm_up)

    @property
    def hour(self) -> float:
        """The present hour of simulated time, by the creations that it is made of.

        It is below 0 during the warm-up.
        """
        return self._totals['created'] / self.plan.creations - self.plan.warm_up

    def prepare(self) -> None:
        """Wait until all services know the cloud."""
        cloud = self._cloud
        self._say('waiting for an engine that leads')
        cloud.wait('an engine that leads', cloud.leader)
        self._say('waiting for snapshots in all schedulers')
        self._changes = [self._world.follow() for _one in cloud.schedulers]
        for one, changes in zip(cloud.schedulers, self._changes):
            cloud.wait(f'a snapshot in {one.log.stem}', lambda one=one, changes=changes: one.ask(
                changes=_drained(changes), example=self._request(worlds.SMALL))['snapshot'])
        # A poll says where counters stand, the second one what is done.
        time.sleep(4 * self.plan.polling)

    def run(self, shown: Callable[[float], None]) -> None:
        """Run all of it.

        :param shown: is told the share that is over
        """
        self._began = time.monotonic()
        threads = [threading.Thread(target=self._guarded, args=(self._drive, number), daemon=True)
                   for number in range(len(self._cloud.schedulers))]
        threads += [threading.Thread(target=self._guarded, args=(one,), daemon=True)
                    for one in (self._audit, self._break, self._force)]
        for one in threads:
            one.start()
        due = self._began
        try:
            while self.share < 1 and not self._ended.is_set():
                due += self.plan.record
                self._ended.wait(max(due - time.monotonic(), 0.0))
                self.rows.append(self._row())
                shown(min(self.share, 1.0))
        except KeyboardInterrupt:
            self._say('interrupted; this is what there is until now')
        self._ended.set()
        for one in threads:
            one.join(60)

    def _guarded(self, work: Callable[..., None], *given: Any) -> None:
        try:
            work(*given)
        except Exception as error:
            self._wrong(f'{work.__name__.strip("_")} ended: {type(error).__name__}: {error}')
            self._ended.set()

    def _drive(self, number: int) -> None:
        """Have one scheduler place VMs, and end as many."""
        cloud, rng = self._cloud, np.random.default_rng([7, number])
        scheduler, changes = cloud.schedulers[number], self._changes[number]
        pause = self.plan.hour / self.plan.creations * len(cloud.schedulers)
        due = time.monotonic()
        while not self._ended.is_set() and self.share < 1:
            due = max(due + pause, time.monotonic() - _ALLOWED_LAG)
            self._ended.wait(max(due - time.monotonic(), 0.0))
            self._place(scheduler, changes,
                        worlds.ON_VOLUME if rng.random() < _ON_VOLUME else worlds.SMALL)
            self._end_one()
            if rng.random() < _MIGRATIONS:
                self._migrate_one(rng)
            if rng.random() < _ATTACHMENTS:
                vm = self._world.any_small()
                if vm is not None and self._world.attach(vm.uuid):
                    cloud.notifier.tell('volume_attach', vm)

    def _place(self, scheduler: orders.Process, changes: Any, kind: worlds.Kind) -> None:
        request = self._request(kind)
        quiet, hot = self._world.quiet(), self._world.hot()
        answer = scheduler.ask(changes=_drained(changes), **request)
        refused = np.zeros(len(quiet), dtype=bool)
        refused[answer.pop('refused')] = True
        offered = np.zeros(len(quiet), dtype=bool)
        offered[answer.pop('offered')] = True
        age = answer['age']
        fresh = age is not None and age < self._cloud.stale
        # Both before and after: VMs come and go while a request is judged.
        wrong = refused & quiet & self._world.quiet()
        hot &= self._world.hot()
        answer.update(fresh=fresh, wrong=int(wrong.sum()), refused=int(refused.sum()),
                      hot=int((hot & offered).sum()), missed=int((hot & offered & ~refused).sum()))
        if wrong.any():
            self._wrong(f'{scheduler.log.stem} refused {wrong.sum()} quiet hosts, '
                        f'{self._world.hosts[int(np.flatnonzero(wrong)[0])]} among them, '
                        f'by a snapshot of {age:.0f} s ago')
        volumes = [] if kind.image else [str(uuid.uuid4())]
        vm = self._world.create(request['uuid'], kind, answer['host'], volumes)
        self._cloud.notifier.tell('create', vm)
        with self._lock:
            self._answers.append(answer)
            self._totals['created'] += 1
            self._totals['on_hot'] += bool(hot[answer['host']] and fresh)

    def _end_one(self) -> None:
        vm = self._world.any_small()
        if vm is not None and self._world.delete(vm.uuid):
            self._cloud.notifier.tell('delete', vm)

    def _migrate_one(self, rng: np.random.Generator) -> None:
        vm, quiet = self._world.any_small(), np.flatnonzero(self._world.quiet())
        if vm is not None and len(quiet):
            self._migrate(vm.uuid, int(rng.choice(quiet)))

    def _migrate(self, name: str, host: int) -> None:
        vm = self._world.migrate(name, host)
        if vm is not None:
            self._cloud.notifier.tell('live_migration_post_dest', vm)
            self._totals['migrated'] += 1

    def _force(self) -> None:
        """Force a few VMs to hot hosts each day, for audits to find."""
        rng, day = np.random.default_rng(9), 0
        while not self._ended.wait(0.5):
            if self.hour + self.plan.warm_up >= 24 * day:
                day += 1
                hot = np.flatnonzero(self._world.hot())
                for host in rng.choice(hot, min(_FORCED, len(hot)), replace=False):
                    vm = self._world.create(str(uuid.uuid4()), worlds.SMALL, int(host))
                    self._cloud.notifier.tell('create', vm)
                    self._totals['forced'] += 1

    def _audit(self) -> None:
        """Audit the cloud now and then, and do what is recommended."""
        world = self._world
        while not self._ended.wait(self.plan.audit):
            began, hot = time.time(), world.hot()
            found = self._cloud.auditor.ask()
            ended = time.time()
            hot &= world.hot()
            if 'failed' in found:
                self.failed[f'audit: {found["failed"]}'] += 1
                continue
            self._totals['audits'] += 1
            moves = [(name, world.hosts.index(source), world.hosts.index(destination))
                     for name, source, destination in found['moves']]
            # Meanwhile VMs come and go, 168 times as fast as in a cloud. A move is right if it was
            # at any moment of those that the audit may have seen, back to the latest poll. What it
            # saw may have lasted for a tenth of a second: each change makes another moment.
            moments = world.moments({host for _name, *both in moves for host in both},
                                    min(found['snapshot'], began) - self.plan.polling, ended)
            gains = np.array([world.gains(moves, at) for at in moments])
            for number, (name, start, end) in enumerate(moves):
                if (gain := gains[:, number].max()) <= 0 or hot[end]:
                    self._wrong(f'an audit moves {name} from {world.hosts[start]} to '
                                f'{world.hosts[end]}, which brings {gain:.2f}')
                    self.details.append({
                        'believed': found['believed'], 'wrong': name,
                        'snapshot': found['snapshot'],
                        'moments': moments, 'gains': gains[:, number].tolist(),
                        'story': world.story((start, end), began - _STORY)})
                vm = world.vms.get(name)
                if vm is None or vm.host != start:
                    self._totals['moves_outdated'] += 1
                    continue
                self._totals['moves'] += 1
                self._totals['moves_off_hot'] += bool(hot[start])
                self._migrate(name, end)

    def _break(self) -> None:
        """Let things go wrong."""
        faults = [(fault.begins * self.plan.hours, fault) for fault in FAULTS]
        if self.plan.warm_up:
            faults[:0] = [((fault.begins - 1) * self.plan.warm_up, fault) for fault in WARM_UP]
        for hour, fault in faults:
            while self.hour < hour:
                if self._ended.wait(0.2):
                    return
            self._say(f'hour {self.hour:.0f}: {fault.name}')
            began = self.hour
            with self._broken(fault.name):
                self._ended.wait(fault.lasts * 60 * self.plan.minutes)
            self.events.append({'name': fault.name, 'begins': began, 'ends': self.hour})
        # The database was started by this thread, and would end with it.
        self._ended.wait()

    @contextlib.contextmanager
    def _broken(self, name: str) -> Any:
        cloud, world = self._cloud, self._world
        if name == 'an engine is killed':
            leader = cloud.leader() or clouds.ENGINES[0]
            cloud.kill_engine(leader)
            yield
            cloud.start_engine(leader)
        elif name == 'agents are silent':
            world.silent = set(world.rng.choice(
                len(world.hosts), round(_SILENT * len(world.hosts)), replace=False).tolist())
            yield
            world.silent = set()
        elif name == 'the broker is stopped':
            cloud.rabbit.stop()
            yield
            cloud.rabbit.start()
        elif name == 'the database is stopped':
            cloud.database.kill(cloud.database.harshest)
            yield
            cloud.database.restart()
        else:
            raise ValueError(name)

    def _row(self) -> dict[str, Any]:
        with self._lock:
            answers, self._answers = self._answers, []
        leader, stated = self._cloud.leader(), {}
        if leader:
            stated = self._cloud.metrics(leader)
        row: dict[str, Any] = {
            'seconds': time.monotonic() - self._began, 'hour': self.hour, 'leader': leader,
            'vms': len(self._world.vms), 'requests': len(answers),
            'cycle_seconds': stated.get(
                'tracon_engine_activity_duration_seconds{activity="collect"}'),
            'listing_seconds': stated.get(
                'tracon_engine_activity_duration_seconds{activity="list"}'),
            # Until something was observed, nothing speaks against the law.
            'trust': next((value for name, value in stated.items()
                           if name.startswith('tracon_host_type_trust')), 1.0),
            'vms_known': stated.get('tracon_vms'),
            'notifications_lost': self._cloud.notifier.lost,
            'asked': self._cloud.services.asked(),
            **{f'mib_{name}': round(value, 1)
               for name, value in self._cloud.mebibytes().items()},
            **self._totals}
        if answers:
            for name, unit in (('wall', 1e3), ('own', 1e3)):
                values = unit * np.array([one[name] for one in answers])
                row |= {f'{name}_ms_mean': float(values.mean()),
                        f'{name}_ms_p95': float(np.quantile(values, 0.95))}
            reference = float(np.mean([one['reference'] for one in answers]))
            row |= {'reference_ms': 1e3 * reference,
                    'own_over_reference': row['own_ms_mean'] / (1e3 * reference)}
            if row['cycle_seconds'] is not None:
                row['cycle_over_reference'] = row['cycle_seconds'] / reference
            ages = [one['age'] for one in answers if one['age'] is not None]
            row |= {'snapshot_age': max(ages, default=None),
                    'unjudged': sum(1 for one in answers if not one['fresh']),
                    'refused': float(np.mean([one['refused'] for one in answers])),
                    'hot': float(np.mean([one['hot'] for one in answers])),
                    'missed': float(np.mean([one['missed'] for one in answers])),
                    'wrong': sum(one['wrong'] for one in answers)}
        return row

    def _wrong(self, text: str) -> None:
        with self._lock:
            self.wrong.append(f'hour {self.hour:.1f}: {text}')
        if len(self.wrong) <= 20:
            self._say(self.wrong[-1])

    @staticmethod
    def _request(kind: worlds.Kind) -> dict[str, Any]:
        return {'uuid': str(uuid.uuid4()), 'project': kind.project, 'flavor': kind.flavor,
                'image': kind.image, 'vcpus': kind.vcpus, 'extra_specs': kind.extra_specs}


def _drained(changes: collections.deque[tuple[int, str, int]]) -> Sequence[tuple[int, str, int]]:
    return [changes.popleft() for _number in range(len(changes))]
