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

"""The one list of meters: what is collected, and what each is for.

All but those of probes, of memory and the number of disks are cumulative. A rate is always
d(counter) / d(clock) of two samples of one resource, the clock being that of the host at the
moment when libvirt was asked: neither jitter of polling nor the bucket that a sample is stored in
nor a clock that was set then has a part in it. A clock starts again when its host is booted, a
VM's counters when it is started or has migrated.
"""

from __future__ import annotations

import dataclasses
from typing import Mapping

#: Scopes: what a meter's resource is. A VM is known by its UUID, a host by nova-compute's name.
VM, HOST, PROBE = 'vm', 'host', 'probe'

# The four characteristics by name; importing them would bring numpy, with a thread for each core,
# into an agent on every compute host.
_READS, _WRITES = 'read_requests_per_second', 'write_requests_per_second'
_GUEST, _HOST = 'guest_cpu', 'host_cpu'
_ELAPSED, _SLOWDOWN, _LOAD = 'elapsed time', 'observed slowdown', 'load of the host'
#: What meters feed that say what limits of VMs themselves do.
OWN_LIMITS, CONTENTION = 'own limits', 'contention of the host'
#: Of a probe's meter: its own name and this have the lower end.
LOW = '.low'


@dataclasses.dataclass(frozen=True)
class Meter:
    """A meter.

    :param unit: of the counter
    :param scope: :data:`VM`, :data:`HOST`, or :data:`PROBE`, which are meters of hosts as well
    :param feeds: the characteristic that it becomes, or what else it is for
    :param description: what is counted
    :param everywhere: whether every VM or host has it; the others only where they are counted
    :param type: Ceilometer's
    """

    name: str
    unit: str
    scope: str
    feeds: str
    description: str
    everywhere: bool = True
    type: str = 'cumulative'


CLOCK = Meter('tracon.clock', 'ns', VM, _ELAPSED,
              'monotonic clock of the host when libvirt read the VM\'s counters')
CPU_GUEST = Meter('tracon.cpu.guest', 'ns', VM, _GUEST,
                  'time that the threads of the virtual CPUs ran')
CPU_HOST = Meter('tracon.cpu.host', 'ns', VM, _HOST,
                 'other CPU time on the VM\'s behalf: emulator and I/O threads')
CPU_DELAY = Meter('tracon.cpu.delay', 'ns', VM, _SLOWDOWN,
                  'time that virtual CPUs were ready to run and waited for a core')
CPU_THROTTLED = Meter('tracon.cpu.throttled', 'ns', VM, OWN_LIMITS,
                      'time of this that the VM\'s own quota kept them waiting', everywhere=False)
READ_REQUESTS = Meter('tracon.disk.read.requests', 'request', VM, _READS,
                      'reads that were served, of all disks')
WRITE_REQUESTS = Meter('tracon.disk.write.requests', 'request', VM, _WRITES,
                       'writes that were served, of all disks')
READ_TIME = Meter('tracon.disk.read.time', 'ns', VM, _SLOWDOWN,
                  'time that these reads took, added up')
WRITE_TIME = Meter('tracon.disk.write.time', 'ns', VM, _SLOWDOWN,
                   'time that these writes took, added up')
READ_BYTES = Meter('tracon.disk.read.bytes', 'B', VM, OWN_LIMITS,
                   'bytes that these reads brought')
WRITE_BYTES = Meter('tracon.disk.write.bytes', 'B', VM, OWN_LIMITS,
                    'bytes that these writes took away')
INSTRUCTIONS = Meter('tracon.perf.instructions', 'instruction', VM, _SLOWDOWN,
                     'instructions that the VM\'s threads retired', everywhere=False)
CYCLES = Meter('tracon.perf.cycles', 'cycle', VM, _SLOWDOWN,
               'cycles of the cores while its threads ran', everywhere=False)
CACHE_MISSES = Meter('tracon.perf.cache_misses', 'miss', VM, _SLOWDOWN,
                     'misses of the last cache', everywhere=False)

HOST_CLOCK = Meter('tracon.host.clock', 'ns', HOST, _ELAPSED,
                   'monotonic clock of the host when its counters were read')
HOST_BUSY = Meter('tracon.host.cpu.busy', 'ns', HOST, _LOAD,
                  'time that cores ran anything, added up')
HOST_IDLE = Meter('tracon.host.cpu.idle', 'ns', HOST, _LOAD,
                  'time that cores had nothing to do')
HOST_IOWAIT = Meter('tracon.host.cpu.iowait', 'ns', HOST, _LOAD,
                    'time that cores were idle while requests were under way')
HOST_STEAL = Meter('tracon.host.cpu.steal', 'ns', HOST, _LOAD,
                   'time that another hypervisor below this one kept the cores for others')
HOST_READ_REQUESTS = Meter('tracon.host.disk.read.requests', 'request', HOST, _LOAD,
                           'reads that the host\'s disks completed', everywhere=False)
HOST_WRITE_REQUESTS = Meter('tracon.host.disk.write.requests', 'request', HOST, _LOAD,
                            'writes that the host\'s disks completed', everywhere=False)
HOST_READ_TIME = Meter('tracon.host.disk.read.time', 'ns', HOST, _LOAD,
                       'time that these reads took, added up', everywhere=False)
HOST_WRITE_TIME = Meter('tracon.host.disk.write.time', 'ns', HOST, _LOAD,
                        'time that these writes took, added up', everywhere=False)
HOST_DISK_BUSY = Meter('tracon.host.disk.busy', 'ns', HOST, _LOAD,
                       'time in which each of these disks had a request under way, added up',
                       everywhere=False)
HOST_DISKS = Meter('tracon.host.disks', 'disk', HOST, _LOAD, 'number of these disks',
                   everywhere=False, type='gauge')
HOST_MEMORY = Meter('tracon.host.memory.total', 'B', HOST, _LOAD, 'memory of the host',
                    everywhere=False, type='gauge')
HOST_MEMORY_AVAILABLE = Meter('tracon.host.memory.available', 'B', HOST, _LOAD,
                              'memory that new processes could get without swapping',
                              everywhere=False, type='gauge')

#: All of them.
#: Phases of a probe, in the order of :data:`PROBE_METERS`, two for each.
PHASES = ('connection', 'memory', 'storage')
PROBE_METERS = tuple(
    Meter('tracon.probe.' + phase + end, 'ratio', PROBE, CONTENTION, text % phase, False, 'gauge')
    for phase in PHASES for end, text in (
        ('', 'time of a sensor\'s work in the %s phase over that of its baseline'),
        (LOW, 'lower end of its 95 %% interval while two readings in a row of the %s phase are '
              'beyond the baseline; 1 while they are not')))

METERS: tuple[Meter, ...] = (
    CLOCK, CPU_GUEST, CPU_HOST, CPU_DELAY, READ_REQUESTS, WRITE_REQUESTS, READ_TIME, WRITE_TIME,
    CPU_THROTTLED, READ_BYTES, WRITE_BYTES, INSTRUCTIONS, CYCLES, CACHE_MISSES,
    HOST_CLOCK, HOST_BUSY, HOST_IDLE, HOST_IOWAIT, HOST_STEAL, HOST_READ_REQUESTS,
    HOST_WRITE_REQUESTS, HOST_READ_TIME, HOST_WRITE_TIME, HOST_DISK_BUSY, HOST_DISKS, HOST_MEMORY,
    HOST_MEMORY_AVAILABLE, *PROBE_METERS)
VM_METERS = tuple(meter for meter in METERS if meter.scope == VM)
HOST_METERS = tuple(meter for meter in METERS if meter.scope == HOST)
BY_NAME: Mapping[str, Meter] = {meter.name: meter for meter in METERS}
