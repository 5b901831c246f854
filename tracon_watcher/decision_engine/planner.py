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

"""A planner for Watcher: an action waits for those that it was assessed upon, and for no other."""

from __future__ import annotations

from typing import Any

import networkx
from watcher.decision_engine.planner import weight

NAME = 'tracon_dependencies'


class DependencyPlanner(weight.WeightPlanner):
    """Orders live migrations by what they depend on.

    Watcher's weight planner runs two migrations at a time whatever they are, and its workload
    stabilization planner all of them, so that states would occur that were not assessed. Here a
    migration waits for the earlier ones that share a host or a server group with it;
    others may run beside it, and one that fails does not hold them up.
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
