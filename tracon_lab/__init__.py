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

"""Laboratory: what measures, models, simulates, demonstrates and benchmarks the product.

testbed      interference between real guests, measured (libvirt, QEMU)
profiling    hosts of a real cloud, measured with VMs of its own, through its APIs
models       the paper's models, learnt from measurements, and their validation
contention   how the signals of counters were calibrated, and VMs are sized
scheduling   which waiting task goes where: TRACON's, the optimum, our own
simulator    a data centre in the computer, with measurements as the truth
demo         stock Nova beside this extension, on measured truth
testcloud    a whole OpenStack on one machine, with real guests
cmd          commands of the program ``tracon``, each with the extra that it needs

The product never imports any of it; contracts are in .importlinter.
"""
