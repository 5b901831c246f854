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

"""Watcher's goal, its efficacy specification, and the planner of its actions."""

from __future__ import annotations

from typing import Any

import networkx
from watcher._i18n import _
from watcher.decision_engine.goal import base
from watcher.decision_engine.goal.efficacy import base as efficacy_base
from watcher.decision_engine.goal.efficacy import indicators
from watcher.decision_engine.planner import weight
from watcher.decision_engine.solution import efficacy

_COUNT = {'type': 'integer', 'minimum': 0}
# Of no VM, or of VMs of which nothing is known, there is no mean: it is then 1, as alone.
_SLOWDOWN = {'type': 'number', 'minimum': 1}


class _Indicator(indicators.IndicatorSpecification):
    def __init__(self, name: str, description: str, unit: str | None,
                 schema: dict[str, Any]) -> None:
        super().__init__(name=name, description=description, unit=unit)
        self._schema = schema

    @property
    def schema(self) -> dict[str, Any]:
        return self._schema


class InterferenceEfficacy(efficacy_base.EfficacySpecification):
    """The indicators that every solution of the goal has to state."""

    def get_indicators_specifications(self) -> list[indicators.IndicatorSpecification]:
        return [
            _Indicator('vms_in_breach_before',
                       _('VMs that breach a limit before the action plan'), None, _COUNT),
            _Indicator('vms_in_breach_after',
                       _('VMs predicted to breach a limit after the action plan'), None, _COUNT),
            _Indicator('mean_slowdown_before',
                       _('Mean predicted slowdown of all known VMs before the action plan'),
                       None, _SLOWDOWN),
            _Indicator('mean_slowdown_after',
                       _('Mean predicted slowdown of all known VMs after the action plan'),
                       None, _SLOWDOWN),
            _Indicator('worst_slowdown_before',
                       _('Worst predicted slowdown of a known VM before the action plan'),
                       None, _SLOWDOWN),
            _Indicator('worst_slowdown_after',
                       _('Worst predicted slowdown of a known VM after the action plan'),
                       None, _SLOWDOWN),
            _Indicator('live_migrations_count',
                       _('Live migrations in the action plan'), None, _COUNT),
            _Indicator('background_vms_removed',
                       _('Background VMs that the action plan stops, shelves or deletes'),
                       None, _COUNT),
        ]

    def get_global_efficacy_indicator(self, indicators_map: Any = None) -> list[Any]:
        """Return the share of the interference above none at all that the plan ends, per cent."""
        share = 0.0
        if indicators_map and indicators_map.mean_slowdown_before > 1:
            share = 100 * (indicators_map.mean_slowdown_before
                           - indicators_map.mean_slowdown_after) / (
                               indicators_map.mean_slowdown_before - 1)
        return [efficacy.Indicator(
            name='interference_ended',
            description=_('Share of the mean slowdown above 1 that the action plan ends'),
            unit='%', value=share)]


NAME = 'interference'


class InterferenceMitigation(base.Goal):
    """End breaches of what VMs tolerate, and lower what they do to each other.

    Predicted from hypervisor-level data alone, by the same judgement as Nova's interference
    filter and weigher.
    """

    @classmethod
    def get_name(cls) -> str:
        return NAME

    @classmethod
    def get_display_name(cls) -> str:
        return str(_('Interference mitigation'))

    @classmethod
    def get_translatable_display_name(cls) -> str:
        return 'Interference mitigation'

    @classmethod
    def get_efficacy_specification(cls) -> InterferenceEfficacy:
        """Return the indicators that solutions of this goal state."""
        return InterferenceEfficacy()


PLANNER = 'tracon_dependencies'


class DependencyPlanner(weight.WeightPlanner):
    """Orders live migrations by what they depend on.

    Watcher's weight planner runs two migrations at a time whatever they are, and its workload
    stabilization planner all of them, so that states would occur that were not assessed. Here a
    migration waits for the earlier ones that share a host or a server group with it;
    others may run beside it, and one that fails does not hold them up. What is done to background
    VMs waits for nothing: a VM that leaves harms none.
    """

    def schedule(self, context: Any, audit_id: int, solution: Any) -> Any:
        """Turn a solution of our strategy, which knows what waits for what, into a plan."""
        self._waits_for = solution.strategy.waits_for
        return super().schedule(context, audit_id, solution)

    def compute_action_graph(self, sorted_weighted_actions: Any) -> Any:
        """Return the graph of actions, from each to those that wait for it."""
        graph = networkx.DiGraph()
        by_vm = {}
        for _weight, actions in sorted_weighted_actions:
            for action in actions:
                vm = action.input_parameters['resource_id']
                graph.add_node(action)
                by_vm[vm] = action
                for earlier in self._waits_for.get(vm, ()):
                    graph.add_edge(by_vm[earlier], action)
                    action.parents.append(by_vm[earlier].uuid)
        return graph
