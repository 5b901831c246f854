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

"""The strategy: Watcher's cluster model in, the planner's moves out as actions; nothing else."""

from __future__ import annotations

import collections
import dataclasses
import time
from typing import Any, Callable

from openstack import connection
from oslo_config import cfg
from oslo_log import log
from watcher.common import exception
from watcher.common import nova_helper
from watcher.common import utils
from watcher.decision_engine.strategy.strategies import base

from tracon_watcher import assignment
from tracon_watcher.conf import decision_engine as options
from tracon_watcher.decision_engine import constraints_builder
from tracon_watcher.decision_engine import engine_feedback
from tracon_watcher.decision_engine import goal
from tracon_watcher.decision_engine import goal as watcher_planner
from tracon_watcher.decision_engine import inventory
from tracon_watcher.decision_engine import parameters
from tracon_watcher.decision_engine import reconcile
from tracon_watcher.decision_engine import records
from tracon_watcher.decision_engine import snapshot_source
from tracon_watcher.inventory import listing
from tracon_watcher.messaging import protocol
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster as cluster_module
from tracon_watcher.placement import placement_constraints
from tracon_watcher.placement import plan
from tracon_watcher.placement import planner

LOG = log.getLogger(__name__)
NAME = 'tracon_interference'
#: What Watcher's database holds of an audit's status message.
_MESSAGE = 255
#: Times that is planned again without VMs that turn out to have shares.
_MOST_PLANS = 10


class InterferenceStrategy(base.BaseStrategy):
    """Ends breaches of what VMs tolerate of each other with a few live migrations.

    Where none helps, and the audit allows it, background VMs are stopped, shelved or deleted, also
    to make room for requests that found no host.

    What each VM suffers, and would suffer and do on every other host, is predicted by the same
    judgement that Nova's interference filter and weigher use, from the same snapshot.
    """

    def __init__(self, config: Any, osc: Any = None) -> None:
        super().__init__(config, osc)
        self._planner = watcher_planner.PLANNER
        #: By uuid of a VM, the VMs whose migrations must have ended before its own starts.
        self.waits_for: dict[str, list[str]] = {}
        self._plan: plan.Plan | None = None
        self._told: Callable[[str | None], None] = lambda audit: None

    @classmethod
    def get_name(cls) -> str:
        return NAME

    @classmethod
    def get_display_name(cls) -> str:
        return 'Interference-aware rebalancing'

    @classmethod
    def get_translatable_display_name(cls) -> str:
        return 'Interference-aware rebalancing'

    @classmethod
    def get_goal_name(cls) -> str:
        return goal.NAME

    @classmethod
    def get_config_opts(cls) -> list[Any]:
        """Return none: it needs no data source."""
        return []

    @classmethod
    def get_schema(cls) -> dict[str, Any]:
        """Return the schema of the audit's parameters."""
        return parameters.SCHEMA

    def pre_execute(self) -> None:
        """Complete and check the parameters, and see that there is a model of the cluster."""
        # Audits made by the API have their defaults; others, such as a template's, may not.
        given = dict(self.input_parameters)
        utils.StrictDefaultValidatingDraft4Validator(parameters.SCHEMA).validate(given)
        self.input_parameters.update(given)
        if not self.compute_model:
            raise exception.ClusterStateNotDefined()

    def do_execute(self, audit: Any = None) -> None:
        """Plan, and put moves into the solution as live migrations, and removals as asked for."""
        try:
            self._plan = self._make_plan()
        except Exception as error:
            # Watcher logs it and fails the audit; the audit itself should say why, too.
            _tell(audit, str(error))
            raise
        self._explain(self._plan)
        action = self.input_parameters[parameters.BACKGROUND]
        removals = self._plan.removals
        removed = f', {len(removals)} background VMs to {action}' if removals else ''
        _tell(audit, f'{len(self._plan.moves)} live migrations{removed}{_against(self._plan)}; '
                     f'{self._plan.reason}')
        # The model itself seeks a node by its name among all nodes and VMs.
        nodes = {node.hostname: node
                 for node in self.compute_model.get_all_compute_nodes().values()}
        for move in self._plan.moves:
            self.add_action_migrate(
                self.compute_model.get_instance_by_uuid(move.uuid), 'live', nodes[move.source],
                nodes[move.destination])
            self.waits_for[move.uuid] = [self._plan.moves[place].uuid for place in move.after]
        for removal in removals:
            self.solution.add_action(action_type=action, resource_id=removal.uuid)
        self._told(getattr(audit, 'uuid', None))

    def post_execute(self) -> None:
        """State what the plan is expected to bring."""
        assert self._plan is not None
        before, after = self._plan.before, self._plan.after
        self.solution.model = self.compute_model
        self.solution.set_efficacy_indicators(
            vms_in_breach_before=before.in_breach, vms_in_breach_after=after.in_breach,
            mean_slowdown_before=before.mean_slowdown, mean_slowdown_after=after.mean_slowdown,
            worst_slowdown_before=before.worst_slowdown, worst_slowdown_after=after.worst_slowdown,
            live_migrations_count=len(self._plan.moves),
            background_vms_removed=len(self._plan.removals))

    def _make_plan(self) -> plan.Plan:
        wanted = parameters.Audit.of(self.input_parameters, time.time())
        options.register_opts(cfg.CONF)
        configured = cfg.CONF[options.GROUP.name]
        connect = protocol.connector(cfg.CONF, configured.transport_url)
        state = snapshot_source.read(wanted.snapshot_file, configured, connect)
        asked = not wanted.snapshot_file and configured.snapshot_source == 'engine'
        now = time.time()
        cloud = self._connect()
        since = now - max(wanted.wishes.cooldown_seconds, inventory.LONGEST_MIGRATION)
        found = inventory.collect(cloud, since)
        settings = state.settings(
            confidence=wanted.confidence,
            maximum_age=configured.maximum_age_seconds or state.maximum_age_seconds)
        hosts = found.services.keys() - found.several
        known, missing = reconcile.matched(
            state.cluster, hosts, lambda: inventory.hosts_by_hypervisor(cloud))
        cluster = reconcile.reconcile(known, self.compute_model, found)
        recorded = self._records(since)
        allowed = constraints_builder.build(found, self.compute_model, wanted.wishes,
                                            cluster.host_index, recorded)
        requests = constraints_builder.requests(found, cluster, wanted.wishes, recorded, now)
        if asked:
            allowed = engine_feedback.heeded(allowed, engine_feedback.feedback(connect), cluster,
                                             now)
        for host_type, taught in sorted(state.learnt.items()):
            if taught.drifted:
                LOG.warning('Hosts of type %(type)s are not judged: predictions and observations '
                            'differ too much there (trusted %(trust).0f %%)',
                            {'type': host_type, 'trust': 100 * taught.trust})
        assessor = assessment.Assessor(cluster, settings)
        made = self._without_shares(cloud, cluster, allowed, lambda rules_now: planner.plan_moves(
            assessor, rules_now, wanted.planning, now, assignment.least_cost, requests))
        if missing:
            text = reconcile.unmatched(state.cluster, missing)
            LOG.warning('Names of hosts: %s', text)
            if len(missing) == len(hosts):
                made = dataclasses.replace(made, reason=f'no beneficial migration: {text}')
        if asked:
            self._told = lambda audit: snapshot_source.tell(
                connect, engine_feedback.documents(made, cluster, audit, now))
        return made

    @staticmethod
    def _without_shares(cloud: connection.Connection, state: cluster_module.ClusterState,
                        allowed: placement_constraints.Constraints,
                        planned: Callable[[placement_constraints.Constraints],
                                          plan.Plan]) -> plan.Plan:
        """Return a plan that moves no VM that has shares of Manila's.

        Nova tells VM by VM alone, so that it is asked for those that would be moved. Where one
        of them has shares, it is asked for its neighbours as well, which may go in its place.

        :param planned: makes a plan
        """
        shared: dict[str, bool] = {}
        made = planned(allowed)
        for again in range(_MOST_PLANS):
            asked = {move.uuid for move in made.moves}
            if again:
                sources = {state.host_index[move.source] for move in made.moves}
                asked.update(uuid for uuid, host in zip(state.uuids, state.host)
                             if host in sources)
            shared.update((uuid, _has_shares(cloud, uuid))
                          for uuid in sorted(asked - shared.keys()))
            if not any(shared[move.uuid] for move in made.moves):
                break
            tied = {uuid: 'has a share of Manila\'s, which does not migrate'
                    for uuid, has in shared.items() if has}
            if again == _MOST_PLANS - 1:
                tied |= {uuid: 'may have shares of Manila\'s, as many VMs have'
                         for uuid in state.uuids if uuid not in shared}
            allowed = dataclasses.replace(allowed, immovable={**allowed.immovable, **tied})
            made = planned(allowed)
        return made

    def _connect(self) -> connection.Connection:
        """Return a connection as Watcher's own to Nova, with Neutron beside it."""
        session = nova_helper.NovaHelper().connection.session
        nova = cfg.CONF.nova
        return connection.Connection(session=session, region_name=nova.region_name,
                                     interface=(nova.valid_interfaces or ['public'])[0])

    def _records(self, since: float) -> records.Records:
        """Return what Watcher's database says since a time, in seconds since the epoch."""
        return records.collect(self.ctx, since)

    def _explain(self, made: plan.Plan) -> None:
        for move in made.moves:
            own = next(one for one in move.changes if one.uuid == move.uuid)
            LOG.info('Recommended: live-migrate VM %(vm)s from %(source)s to %(destination)s: '
                     'gain %(gain).3f for a cost of %(cost).3f, ends %(ended)d breaches, relieves '
                     '%(relieves)s; its own slowdown %(before).2f becomes %(after).2f', {
                         'vm': move.uuid, 'source': move.source, 'gain': move.gain,
                         'destination': move.destination, 'cost': move.cost,
                         'ended': move.ended, 'relieves': ', '.join(move.relieves),
                         'before': own.slowdown_before, 'after': own.slowdown_after})
        for removal in made.removals:
            why = (f'makes room for VM {removal.request}, which found no host' if removal.request
                   else f'ends the breaches of {", ".join(removal.ends)}')
            LOG.info('Recommended: %(action)s background VM %(vm)s on %(host)s: with all others '
                     'of this host, it %(why)s', {
                         'action': self.input_parameters[parameters.BACKGROUND],
                         'vm': removal.uuid, 'host': removal.host, 'why': why})
        for host in made.remainders:
            for option in host.options:
                LOG.info('Passed over: VM %(vm)s of %(host)s%(where)s: %(against)s, %(why)s', {
                    'vm': option.uuid, 'host': host.host, 'where': _where(option),
                    'against': option.obstacle.against.value, 'why': option.obstacle.why})
        LOG.info('Plan ends after %(count)d live migrations: %(reason)s',
                 {'count': len(made.moves), 'reason': made.reason})


def _has_shares(cloud: connection.Connection, uuid: str) -> bool:
    """Ask Nova; a VM that is gone is not to be moved either."""
    try:
        return inventory.has_shares(cloud, uuid)
    except listing.NotFound:
        return True


def _against(made: plan.Plan) -> str:
    """Say how often each kind of obstacle stood against a move."""
    counted = collections.Counter(option.obstacle.against.value for host in made.remainders
                                  for option in host.options)
    said = ', '.join(f'{kind} {count}' for kind, count in counted.most_common())
    return f' (against others: {said})' if said else ''


def _where(option: plan.Option) -> str:
    if option.destination is None:
        return ''
    more = f' and {option.hosts - 1} more' if option.hosts > 1 else ''
    return f' to {option.destination}{more}'


def _tell(audit: Any, text: str) -> None:
    if audit is not None:
        audit.status_message = text if len(text) <= _MESSAGE else text[:_MESSAGE - 3] + '...'
