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

"""Assessor of requests: one assessment an instance, shared by the filter and the weigher."""

from __future__ import annotations

import dataclasses
import logging
import threading
import time

import numpy as np

from nova_filters import assumed_placements
from nova_filters import decision_record
from nova_filters import instance_changes
from nova_filters import log_once
from nova_filters import periodic_worker
from nova_filters import policy as options_module
from nova_filters import policy as policies
from nova_filters import reassessment
from nova_filters import request as hosts_module
from nova_filters import request
from nova_filters import scheduling_result
from nova_filters import selection_tracker
from nova_filters import snapshot_client
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import limits as limits_module
from tracon_watcher.placement import newcomer_profiles
from tracon_watcher.placement import storage_backends

# Seconds between two rounds in the background: while hosts are being chosen, while siblings may
# be busy, and when nothing has been asked for a while.
_CHOOSING, _BUSY, _IDLE = 0.1, 0.5, 5.0
_BUSY_FOR = 60.0
# Other requests of which a request looks at all hosts at most, where none is expected: as where
# the filter works without the weigher. Each costs a pass over them.
_SCANNED = 4
EXEMPT = 'weighed only, since it is moved or its host is named'


class RequestAssessor:
    """One scheduler worker's judgement; create it in the worker, not before the fork.

    :param options: plain values
    :param log: logger
    :param clock: seconds since the epoch
    :param connect: gives a transport to the engine; see
        :func:`tracon_watcher.messaging.protocol.connector`
    :param listener: by what name the engine is listened to
    """

    def __init__(self, options: options_module.Options, log, clock=time.time, connect=None,
                 listener: str = 'nova-scheduler') -> None:
        self.options = options
        self._log = log
        self._clock = clock
        self.faults = log_once.FaultLog(log)
        self.pending = assumed_placements.AssumedPlacements(options.pending_expiry_seconds)
        self._cache = reassessment.AssessmentCache()
        self._results = scheduling_result.SchedulingResultCache()
        self.snapshots = snapshot_client.SnapshotClient(
            _wishes(options), self.faults, log,
            lambda prepared: self._cache.prepare(
                prepared.assessor, self.options.limits, self._clock()))
        self.source: snapshot_client.FileSource | snapshot_client.EngineSource
        self._decisions: decision_record.DecisionQueue | None = None
        if options.snapshot_source == 'engine':
            self.source = snapshot_client.EngineSource(
                connect, listener, options.engine_check_seconds, self.snapshots, self.faults)
            self._decisions = decision_record.DecisionQueue(self.source.post, self.faults)
        else:
            self.source = snapshot_client.FileSource(options.snapshot_file, self.snapshots)
        self._choices = selection_tracker.SelectionTracker(self.pending, self._on_settled)
        self._exchange = None
        if options.pending_directory:
            self._exchange = assumed_placements.PlacementExchange(
                options.pending_directory, options.pending_expiry_seconds, self.faults)
        self._outbox: list[assumed_placements.Placement] = []
        self._cancelled: list[str] = []
        self._outbox_lock = threading.Lock()
        self._residency = instance_changes.InstanceChanges(options.pending_expiry_seconds,
                                                           self._on_superseded)
        self._latest = hosts_module.LatestHostStates()
        self._background = periodic_worker.PeriodicWorker(self._work, self.faults)
        # In a thread of its own: the file system of the directory may never answer.
        self._telling = periodic_worker.PeriodicWorker(self._tell, self.faults)
        self._looked_at = -np.inf
        self._asked_at = -np.inf

    def reconfigure(self, options: options_module.Options) -> None:
        """Judge by other options from the next request on; those that can be changed so."""
        self.options = options
        self.snapshots.wish(_wishes(options))
        self._wake()

    def passing(self, states: list, spec) -> list:
        """Return the HostStates that pass, for the filter."""
        judged = self.judge(spec, states)
        if judged is None:
            return states
        self._results.keep(spec, judged)
        out = judged.taken_out()
        left = judged.without(out) if out.any() else states
        if not judged.alternates:
            self._record(judged, spec)
        return left

    def _record(self, judged: scheduling_result.SchedulingResult, spec) -> None:
        refused = judged.refused()
        if not refused.any():
            outcome = EXEMPT if judged.exempt else 'nothing refused in this mode'
            self._report(judged, spec, judged.breached() & (judged.modes > policies.Mode.OFF),
                         outcome)
        elif refused.all() and judged.least_harm:
            outcome = 'all would be refused, least harm first'
            self._report(judged, spec, refused, outcome)
        else:
            outcome = 'refused'
            self._report(judged, spec, refused, outcome)
        self._capture(judged, spec, outcome)

    def weights(self, states: list, spec, others: list[float]) -> list[float]:
        """Return a weight for each HostState, for the weigher.

        :param others: what other weighers gave each, for the record of the decision
        """
        judged = self._results.take(spec)
        if judged is None:
            judged = self.judge(spec, states)
            if judged is not None and not judged.alternates:
                self._capture(judged, spec, EXEMPT if judged.exempt else 'weighed only')
        if judged is None:
            return [0.0] * len(states)
        weights = judged.weights_of(states)
        judged.other_weights[judged.positions(states)] = others
        favourite = judged.favourite(states, weights)
        if favourite is not None and not judged.alternates:
            self._choices.expect(spec, favourite, self._clock())
        return weights

    def judge(self, spec, states: list) -> scheduling_result.SchedulingResult | None:
        """Judge the placement of the request's present instance on these hosts.

        :returns: None when nothing is to be judged, or there is no snapshot
        """
        options = self.options
        hosts = hosts_module.HostStates(states)
        policy = policies.of_hosts(hosts, policies.MODES[options.mode], self.faults)
        if not policy.active or not states:
            return None
        now = self._asked_at = self._clock()
        self._wake()
        self.snapshots.wait(options.initial_wait_seconds)
        self._choices.settle(now, spec, _SCANNED if policy.decides else 0)
        prepared = self.snapshots.current
        if prepared is None:
            return None
        assessor, cluster = prepared.assessor, prepared.cluster
        uuid = spec.instance_uuid
        rows = hosts.rows(cluster, self._latest)
        self._check_names(cluster, states, rows)
        stale = assessor.stale(now)
        changes = self._residency.changes(assessor, hosts, rows, self.pending, uuid, now, stale)
        present = cluster.resident_index.get(uuid)
        profile = self._profile(assessor, spec, uuid)
        limits, limits_at = self._limits(policy, spec, rows, len(cluster.hosts), options)
        found = foreseen = part = None
        if profile.known:
            if stale.any() and stale[rows[rows >= 0]].all():
                found = foreseen = reassessment.outdated(assessor, profile)
            else:
                found, foreseen, part = reassessment.reassess(
                    assessor, uuid, profile, limits, changes,
                    self._residency.expected(cluster, self.pending, uuid, now, stale), now,
                    self._cache)
        alternates = self._choices.chosen(spec, uuid)
        if not alternates:
            self._choices.watch(spec, uuid, states, hosts.counts, profile, limits_at, now)
        if found is not None:
            self._check_age(assessor, found, rows)
        return scheduling_result.SchedulingResult(
            uuid, states, rows, policy.modes(), found, foreseen,
            request.never_refused(spec, present is not None),
            options.on_all_refused == 'least_harm',
            scheduling_result.AssessmentInputs(now, prepared.content.identity, profile, assessor,
                                               part, storage_backends.pool_of(cluster, present),
                                               limits_at(0).background,
                                               options.weight_multiplier),
            alternates)

    def close(self) -> None:
        """End the background threads."""
        self._background.stop()
        self._telling.stop()
        self.source.close()

    def _capture(self, judged: scheduling_result.SchedulingResult, spec, outcome: str) -> None:
        if self._decisions is not None:
            self._decisions.capture(judged, spec, outcome)

    def _profile(self, assessor: assessment.Assessor, spec,
                 uuid: str) -> newcomer_profiles.Profile:
        cluster = assessor.cluster
        row = cluster.resident_index.get(uuid)
        if row is not None:
            # On storage that is not known, it is not known on which host its I/O is felt.
            found = cluster.resident_profile(row)
            return storage_backends.felt(cluster, found, cluster.io_domain[row] < 0)
        expected = newcomer_profiles.expected(cluster.history, *request.kind(spec))
        expected = dataclasses.replace(expected, vcpus=request.vcpus(spec.flavor),
                                       cpu_weight=request.cpu_weight(spec.flavor))
        return storage_backends.felt(cluster, expected, request.boots_from_volume(spec))

    def _limits(self, policy: policies.HostModes, spec, rows, count: int,
                options: options_module.Options):
        """Return the newcomer's limits for the assessment, and a function of the position."""
        flavor = policies.of_flavor(spec, self.faults)
        default = flavor.or_else(options.limits)
        special = {position: flavor.or_else(rules.limits).or_else(options.limits)
                   for position, rules in policy.special.items()
                   if rules.limits != limits_module.NONE}
        if not special:
            return default, lambda position: default
        limits = [default] * count
        for position, one in special.items():
            if rows[position] >= 0:
                limits[rows[position]] = one
        return limits, lambda position: special.get(position, default)

    def _check_names(self, cluster: cluster_module.ClusterState, states: list, rows) -> None:
        """Say that Nova and the snapshot call hosts by different names, as far as it seems so."""
        known = int(np.count_nonzero(rows >= 0))
        if 2 * known >= len(rows):
            self.faults.mended('names')
            return
        one = states[int(np.argmin(rows))]
        self.faults.report('names', (
            f'{self.source.name}: snapshot {cluster.version} has {known} of the {len(rows)} hosts '
            f'of a request, the others are unknown: Nova calls one {one.host} (hypervisor '
            f'{one.nodename}), the snapshot has {next(iter(cluster.hosts), "none")}; write one '
            'of this cloud, and name hosts as "openstack compute service list" does'), key='names')

    def _check_age(self, assessor: assessment.Assessor, found, rows) -> None:
        known = rows[rows >= 0]
        stale = int(np.count_nonzero(found.status[known] == assessment.Status.STALE))
        if len(known) and stale == len(known):
            self.faults.report('stale', (
                f'{self.source.name}: snapshot {assessor.cluster.version} is stale, its '
                f'data older than {assessor.settings.maximum_age:g} s, or of the future by this '
                f'host\'s clock: hosts are chosen without it until a newer one is written'),
                key='stale')
        else:
            self.faults.mended('stale')

    def _report(self, judged: scheduling_result.SchedulingResult, spec, hosts,
                outcome: str) -> None:
        if self._log.isEnabledFor(logging.INFO) and hosts.any():
            self._log.info('%s', scheduling_result.refusal_text(
                scheduling_result.refusal_content(judged, hosts, outcome,
                                                  policies.of_flavor(spec, self.faults))))

    def _on_settled(self, found: list[assumed_placements.Placement], failed: list[str]) -> None:
        self.pending.add(found)
        self.pending.discard(failed)
        if self._decisions is not None:
            self._decisions.settled(found, failed, self._clock())
        self._post(found, failed)

    def _on_superseded(self, uuids: list[str]) -> None:
        self._post([], uuids)

    def _post(self, found: list[assumed_placements.Placement], failed: list[str]) -> None:
        """Have the siblings told; what is too much for one that does not answer is lost."""
        if self._exchange is not None:
            with self._outbox_lock:
                self._outbox = [*self._outbox, *found][-assumed_placements.MOST:]
                self._cancelled = [*self._cancelled, *failed][-assumed_placements.MOST:]
        self._wake()

    def _wake(self) -> None:
        self._background.wake()
        if self._exchange is not None:
            self._telling.wake()

    def _work(self) -> float:
        now = self._clock()
        # Each apart: where one fails again and again, the others still forget what is over.
        for step, what in ((lambda: self._choices.settle(now), 'Chosen hosts were not noted'),
                           (lambda: self.pending.expire(now), 'Placements were not forgotten'),
                           (self._look, 'The snapshot was not looked at'),
                           (self.snapshots.renew, 'The snapshot was not prepared again'),
                           (self._tell_engine, 'Decisions were not recorded')):
            self.faults.guarded(step, None, what)
        return self._pause(now)

    def _tell(self) -> float:
        now = self._clock()
        self.faults.guarded(self._tell_siblings, None, 'Other workers were not told of placements')
        return self._pause(now)

    def _pause(self, now: float) -> float:
        if self._choices.waiting:
            return _CHOOSING
        busy = now - self._asked_at < _BUSY_FOR
        return min(_BUSY if busy else _IDLE, self.options.snapshot_refresh_seconds)

    def _look(self) -> None:
        now = self._clock()
        if abs(now - self._looked_at) >= self.options.snapshot_refresh_seconds:
            self._looked_at = now
            self.source.refresh()

    def _tell_siblings(self) -> None:
        with self._outbox_lock:
            found, self._outbox = self._outbox, []
            failed, self._cancelled = self._cancelled, []
        if self._exchange is not None:
            self._exchange.publish(found, failed)
            heard, cancelled = self._exchange.collect()
            self.pending.add(heard)
            self.pending.discard(cancelled)

    def _tell_engine(self) -> None:
        if self._decisions is not None:
            self._decisions.tell(self.snapshots.current)


def _wishes(options: options_module.Options) -> snapshot_client.AssessmentOptions:
    return snapshot_client.AssessmentOptions(options.confidence, options.margin,
                                             options.maximum_age_seconds)
