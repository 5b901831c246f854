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

"""What an action plan is worth: breaches and slowdowns, before it and after."""

from __future__ import annotations

from typing import Any

from watcher._i18n import _
from watcher.decision_engine.goal.efficacy import base as efficacy_base
from watcher.decision_engine.goal.efficacy import indicators
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
