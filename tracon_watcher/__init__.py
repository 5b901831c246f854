#  Licensed under the Apache License, Version 2.0 (the "License"); you may
#  not use this file except in compliance with the License. You may obtain
#  a copy of the License at
#
#       http://www.apache.org/licenses/LICENSE-2.0
#
#  Unless required by applicable law or agreed to in writing, software
#  distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#  WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#  License for the specific language governing permissions and limitations
#  under the License.

"""Predicts how virtual machines slow each other down, and acts on it.

characteristics  what is known of a VM: four numbers, their order and units
contention       what counters say of a VM: demand, observed slowdown, what limits it
placement        hosts, residents, limits, and the one judgement: assess()
background       how much of a host's resources background work may have beside the VMs
telemetry        Ceilometer's pollsters; readers of Gnocchi and Prometheus
inventory        who runs where, asked of the cloud in bulk
engine           the service: collects, keeps the state, publishes; its storage
messaging        carries snapshots and decisions between the engine and the others
api              what operators and tenants ask the engine;  osc  their commands
decision_engine  Watcher's goal, strategy, efficacy and scoring engines
conf             options, one module a group;  cmd  the program ``tracon``
tenant           for tenants: load shifted away from contended workers
../nova_filters  the filter, the weigher and the extra specs Nova loads

What measures, simulates and demonstrates it is ../tracon_lab. Rules of import stand in
.importlinter; why, in the contributor's guide.
"""
