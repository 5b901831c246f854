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

"""Records what libvirt and the kernel say of three guests; run as root, from the top of the tree.

The guests are: one with two of at most four virtual CPUs, two disks and an empty drive; one that
only reads; one that is paused. A fourth is defined and shut off. In the last poll the monitor of
the second does not answer, and somebody else is waiting for it. What is recorded lies beside this
file; the tests' expectations are about its structure, not its numbers.

    python -m tests.unit.telemetry.recorded.record
"""

import json
import os
import pathlib
import signal
import threading
import time

from tests.functional.telemetry import guests

HERE = pathlib.Path(__file__).parent


def main():
    import libvirt

    from tracon_watcher.telemetry import libvirt as ours

    def poll():
        begin = time.monotonic_ns()
        answers = reader.getAllDomainStats(ours.GROUPS, ours.FLAGS)
        end = time.monotonic_ns()
        return {'begin': begin, 'end': end, 'domains': [
            [names[domain.UUIDString()], domain.UUIDString(), stats]
            for domain, stats in answers]}

    def host():
        return {'clock': time.monotonic_ns(),
                'stat': pathlib.Path('/proc/stat').read_text().splitlines()[:3],
                'diskstats': pathlib.Path('/proc/diskstats').read_text().splitlines(),
                'block': {entry.name: sorted(slave.name for slave in (entry / 'slaves').iterdir())
                          for entry in pathlib.Path('/sys/block').iterdir()}}

    with guests.Guests() as running:
        reader = libvirt.openReadOnly('qemu:///system')
        several = running.boot('<vcpu current="2">4</vcpu>', more=guests.EMPTY_DRIVE)
        reads, paused = running.boot(), running.boot()
        xml, _port = running.definition('telemetry-test-off-%d' % os.getpid())
        off = running.connection.defineXML(xml)
        names = {several.uuid: 'several', reads.uuid: 'reads', paused.uuid: 'paused',
                 off.UUIDString(): 'off'}
        try:
            several.run(cpu_seconds=0.004, reads=2, writes=1, period=20_000)
            reads.run(reads=2, period=20_000)
            time.sleep(1)
            paused.domain.suspend()
            hosts, polls = [host()], [poll()]
            time.sleep(2)
            hosts.append(host())
            polls.append(poll())
            inactive = [stats for domain, stats in reader.getAllDomainStats(ours.GROUPS, 0)
                        if domain.UUIDString() == off.UUIDString()]
            os.kill(reads.pid, signal.SIGSTOP)
            try:
                waiting = threading.Thread(target=poll)
                waiting.start()
                time.sleep(0.5)
                occupied = poll()
            finally:
                os.kill(reads.pid, signal.SIGCONT)
            waiting.join()
        finally:
            off.undefine()
        version = running.connection.getLibVersion()
    write('domains.json', {
        'libvirt': version, 'kernel': os.uname().release, 'polls': polls,
        'occupied': occupied, 'off': inactive[0]})
    write('host.json', {'kernel': os.uname().release, 'moments': hosts})


def write(name, content):
    (HERE / name).write_text(json.dumps(content, indent=1) + '\n')


if __name__ == '__main__':
    main()
