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

"""The engine: collects, keeps the state of the cloud, publishes it while it leads."""

from __future__ import annotations

import dataclasses
import logging
import math
import threading
import time
from typing import Callable, Mapping, Protocol

from tracon_watcher.engine import collector as collectors
from tracon_watcher.engine import host_type_learner
from tracon_watcher.engine import idle_shares
from tracon_watcher.engine import inventory_cache
from tracon_watcher.engine import leadership as leaderships
from tracon_watcher.engine import listener
from tracon_watcher.engine import periodic_task
from tracon_watcher.engine import probes as probes_module
from tracon_watcher.engine import state
from tracon_watcher.engine.storage import lease as leases
from tracon_watcher.engine.storage import records
from tracon_watcher.engine import view
from tracon_watcher.engine import view as view_module
from tracon_watcher.inventory import cloud
from tracon_watcher.inventory import listing
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import snapshot

LOG = logging.getLogger(__name__)
#: Seconds that work at hand is waited for at the end.
_END = 10.0
#: After so many intervals, and so many seconds, without success something does not work.
_OVERDUE, _LONGEST_WORK = 3.0, 120.0
#: Seconds between two full listings at least, however often Nova tells of changes.
_SHORTEST_REPAIR = 30.0
#: VMs whose volumes are asked for at a time, and the seconds between two times at least.
_LOOKUPS, _SHORTEST_LOOKUP = 20, 5.0
#: So many that fail end a time: each may have waited until it timed out.
_FAILED_LOOKUPS = 3
#: Seconds between two times that what was learnt is stored.
_SAVING = 300.0
#: Seconds between two looks whether an hour has begun whose counters are to be read.
_HOURS = 600.0


class Publisher(listener.Startable, Protocol):
    """Serves snapshots, see :class:`tracon_watcher.messaging.publisher.Publisher`."""

    def publish(self, content: snapshot.Snapshot) -> None:
        """Make a snapshot the present one."""

    def adopt(self, content: snapshot.Snapshot) -> None:
        """Begin from a snapshot of another engine's."""

    def statistics(self) -> dict[str, int]:
        """Return numbers for those who watch the engine."""


class Standby(Protocol):
    """Listens to the leading engine: :class:`tracon_watcher.messaging.subscriber.Standby`."""

    def start(self) -> None:
        """Begin."""

    def stop(self) -> snapshot.Snapshot | None:
        """End, and return what was heard last."""


@dataclasses.dataclass(frozen=True)
class Components:
    """What an engine is made of.

    :param list_cloud: returns a full listing
    :param make_collector: called when it begins to lead: what a former leader learnt is not known
    :param make_publisher: likewise
    :param make_listener: of notifications, None without; called in a thread of its own
    :param make_standby: called when it begins to wait for the lead; None: it does not listen
    :param volumes_of: returns the volumes of a VM, given its uuid and the backends that are known;
        None where nothing can be said; None instead of it: only full listings tell
    :param probes: reads what probe VMs feel; None without them
    :param idle: reads the counters of hosts; None: their idle shares are unknown
    """

    leadership: leaderships.Leadership
    lease: leases.Lease
    learnt: records.LearnedParameters
    list_cloud: Callable[[], cloud.Inventory]
    residency: inventory_cache.InventoryCache
    make_collector: Callable[[], collectors.Collector]
    make_publisher: Callable[[], Publisher]
    make_listener: Callable[[], listener.Hearing] | None
    make_standby: Callable[[], Standby] | None = None
    volumes_of: Callable[[str, Mapping[str, str]], cloud.Volumes | None] | None = None
    probes: probes_module.Probes | None = None
    idle: idle_shares.IdleShareHistory | None = None


@dataclasses.dataclass(frozen=True)
class Settings:
    """How it works.

    :param collection_interval: seconds between two collections; up to ``polling_interval`` where
        they take long
    :param polling_interval: seconds between two samples of a VM
    :param repair_interval: seconds between two full listings
    """

    collection_interval: float = 30.0
    polling_interval: float = 60.0
    repair_interval: float = 300.0
    judging: assessment.Settings = assessment.Settings()
    defaults: state.Defaults = state.Defaults()


class Engine:
    """Keeps :attr:`view` up to date; None while it does not lead, or knows nothing yet.

    :param clock: seconds since the epoch
    """

    def __init__(self, parts: Components, settings: Settings,
                 clock: Callable[[], float] = time.time) -> None:
        self.view: view_module.View | None = None
        self.collected: collectors.Collection | None = None
        #: Called after each new view, by the thread that made it.
        self.after_view: Callable[[], None] = lambda: None
        self.reports = periodic_task.Reports(LOG)
        self._parts = parts
        self._settings = settings
        self._clock = clock
        self._told: cluster_module.ClusterState | None = None
        self._collector: collectors.Collector | None = None
        self._checking = host_type_learner.HostTypeLearner(settings.polling_interval)
        self._saved_at = -math.inf
        self._publisher: Publisher | None = None
        self._listening: listener.Listening | None = None
        self._standby: Standby | None = None
        # Beginning and ending to lead exclude a cycle.
        self._lock = threading.Lock()
        self.activities = {
            'lead': periodic_task.PeriodicTask('Leading', self.lead, parts.leadership.interval),
            'list': periodic_task.PeriodicTask(
                'Listing the cloud', self.repair, settings.repair_interval,
                parts.residency.repair_wanted,
                shortest=min(_SHORTEST_REPAIR, settings.repair_interval),
                overdue=_OVERDUE * settings.repair_interval + _LONGEST_WORK),
            'collect': periodic_task.PeriodicTask(
                'Collecting', self.collect, settings.collection_interval,
                longest=max(settings.collection_interval, settings.polling_interval),
                overdue=_OVERDUE * settings.polling_interval + _LONGEST_WORK)}
        if parts.volumes_of is not None:
            self.activities['look up'] = periodic_task.PeriodicTask(
                'Looking up volumes', self.look_up, settings.repair_interval,
                parts.residency.lookup_wanted, shortest=_SHORTEST_LOOKUP)
        if parts.idle is not None:
            self.activities['read idle shares'] = periodic_task.PeriodicTask(
                'Reading idle shares', self.read_idle_shares, _HOURS)
        if parts.make_listener is not None:
            self.activities['listen'] = periodic_task.PeriodicTask(
                'Listening to Nova', self.listen, listener.PATIENCE)

    def start(self) -> None:
        """Begin; returns at once."""
        for one in self.activities.values():
            one.start()

    def stop(self) -> None:
        """End, and let another engine lead; work that hangs is not waited for to the end."""
        for one in self.activities.values():
            one.end()
        deadline = time.monotonic() + _END
        for one in self.activities.values():
            one.stop(max(deadline - time.monotonic(), 0.0))
        if self._lock.acquire(timeout=max(deadline - time.monotonic(), 0.1)):
            try:
                self._end_leading()
                self._end_waiting()
            finally:
                self._lock.release()
        else:
            LOG.warning('A cycle still runs after %g seconds; the engine ends without it', _END)
        self._parts.leadership.resign()

    @property
    def publisher(self) -> Publisher | None:
        """What publishes while this engine leads."""
        return self._publisher

    def lead(self) -> None:
        """Begin or end to lead as the lease has it."""
        leading = self._parts.leadership.poll()
        if leading == (self._publisher is not None):
            if not leading:
                self._wait()
            return
        with self._lock:
            if leading:
                self._begin_leading()
            else:
                self._end_leading()
        if leading:
            # Both at once, in this order: nothing can be collected for unknown VMs.
            self.activities['list'].wake()
            self.activities['collect'].wake()
            if 'read idle shares' in self.activities:
                self.activities['read idle shares'].wake()

    def repair(self) -> None:
        """List the cloud again."""
        publisher = self._publisher
        if publisher is None:
            return
        try:
            inventory = self._parts.list_cloud()
        except listing.CloudUnavailable as error:
            self.reports.failures['list'] = str(error)
            raise
        self.reports.failures.pop('list', None)
        if publisher is not self._publisher:
            # Of a former term. What Nova told between the terms is in no listing but the next one.
            return
        first = self._parts.residency.current() is None
        repaired = self._parts.residency.replace(inventory)
        if repaired:
            LOG.info('%d VMs were elsewhere, or in another state, than Nova\'s notifications had '
                     'told', repaired)
        if first:
            self.activities['collect'].wake()

    def look_up(self) -> None:
        """Ask for the volumes of some VMs that have others since they were listed.

        :raises tracon_watcher.inventory.listing.CloudUnavailable: when there was no answer at all
        """
        residency, volumes_of = self._parts.residency, self._parts.volumes_of
        inventory = residency.current()
        if self._publisher is None or volumes_of is None or inventory is None:
            return
        failures: list[listing.CloudUnavailable] = []
        answered = False
        for uuid, told_at in residency.questions(_LOOKUPS).items():
            try:
                found = volumes_of(uuid, inventory.backends)
            except listing.CloudUnavailable as error:
                failures.append(error)
                residency.postpone(uuid, told_at)
                if len(failures) == _FAILED_LOOKUPS:
                    break
            else:
                residency.answer(uuid, told_at, found)
                answered = True
        if failures and not answered:
            raise failures[0]
        if residency.questions(1):
            residency.lookup_wanted.set()

    def collect(self) -> None:
        """Read telemetry and publish what follows from it.

        :raises activity.Reported: after that, when telemetry has had nothing new for long
        """
        with self._lock:
            if self._publisher is not None:
                self._cycle()

    def read_idle_shares(self) -> None:
        """Read what hosts left idle in the hours that have passed, while this engine leads.

        :raises tracon_watcher.telemetry.samples.TelemetryUnavailable: and nothing is lost by it
        """
        if self._publisher is not None and self._parts.idle is not None:
            self._parts.idle.collect(self._clock())

    def listen(self) -> None:
        """See whether Nova's notifications are heard while this engine leads.

        :raises listening.NotListening: when they are not
        """
        found = self._listening
        if found is not None:
            found.check()

    def _wait(self) -> None:
        """Listen to the engine that leads, so as to go on from there."""
        if self._standby is None and self._parts.make_standby is not None:
            self._standby = self._parts.make_standby()
            self._standby.start()

    def _end_waiting(self) -> snapshot.Snapshot | None:
        if self._standby is None:
            return None
        standby, self._standby = self._standby, None
        return standby.stop()

    def _begin_leading(self) -> None:
        heard = self._end_waiting()
        # Of what happened since it led last, it was told nothing.
        self._parts.residency.forget()
        self._collector = self._parts.make_collector()
        publisher = self._parts.make_publisher()
        self._checking = host_type_learner.HostTypeLearner(self._settings.polling_interval)
        if heard is None:
            learnt, pools, saved_at = self._parts.learnt.load()
            self._checking.adopt(learnt, pools, max(self._clock() - saved_at, 0.0))
        else:
            self._checking.adopt(heard.learnt, heard.pools)
            publisher.adopt(heard)
            self._told = heard.cluster
        publisher.start()
        if self._parts.make_listener is not None:
            # Last: what fails before is tried again, and would begin one more of them.
            self._listening = listener.Listening(self._parts.make_listener)
            self._listening.start()
        self._publisher = publisher

    def _end_leading(self) -> None:
        for one in (self._publisher, self._listening):
            if one is not None:
                one.stop()
        self._publisher = self._listening = self._collector = None
        self._told = self.view = self.collected = None
        self.reports.failures.clear()

    def _cycle(self) -> None:
        inventory = self._parts.residency.current()
        if inventory is None or self._collector is None or self._publisher is None:
            return
        inventory, now = inventory.judged(), self._clock()
        collected = self._collector.collect(inventory, now)
        epoch, version = self._parts.lease.next_version(self._parts.leadership.term())
        probes = self._parts.probes
        felt = {} if probes is None else probes.collect(
            tuple(inventory.hypervisors), now, collected.skews)
        for kind, text in collected.silence.reports:
            self.reports(kind, text)
        for text in collected.clocks:
            self.reports('clocks', text)
        for text in () if probes is None else probes.troubles:
            self.reports('probes', text)
        contention = ({} if self.view is None else
                      probes_module.contention(felt, self.view.assessor))
        cluster = view.deadband(self._told, state.build(
            inventory, collected.demand, self._settings.defaults, version, now, self.reports,
            contention, self._settings.judging.maximum_age, collected.skews))
        self.reports.end()
        learnt, pools = self._checking.learnt, self._checking.pools
        self._publisher.publish(snapshot.Snapshot(
            cluster, self._settings.judging.maximum_age, epoch, learnt, pools))
        self._told = cluster
        self.collected = collected
        assessor = assessment.Assessor(
            cluster, dataclasses.replace(self._settings.judging, learnt=learnt, pools=pools))
        self.view = view.make_view(epoch, assessor, inventory, collected, now, felt, *(
            () if self._parts.idle is None else (self._parts.idle.shares,)))
        self._checking.take(self.view)
        if now >= self._saved_at + _SAVING or now < self._saved_at:
            self._saved_at = now
            self._parts.learnt.save(self._checking.learnt, self._checking.pools, now)
        self.after_view()
        if collected.silence.everywhere is not None:
            raise periodic_task.Reported(collected.silence.everywhere)
