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

"""The goal: VMs that slow each other down less."""

from __future__ import annotations

from watcher._i18n import _
from watcher.decision_engine.goal import base

from tracon_watcher.decision_engine import efficacy

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
    def get_efficacy_specification(cls) -> efficacy.InterferenceEfficacy:
        """Return the indicators that solutions of this goal state."""
        return efficacy.InterferenceEfficacy()
