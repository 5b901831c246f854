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

"""A synthetic cloud at the vendor's edge: Nova, Glance and telemetry, and guests that keep to
their schedules by a law of interference of which everything is known. Its time is its own.
"""

import dataclasses
import gzip
import json
import pathlib
import re
import types
from urllib import parse

import numpy as np
import requests

from tracon_lab.testbed import image
from tracon_watcher.engine import collector
from tracon_watcher.telemetry import samples

POLLING = 10.0
ITERATIONS, READS, WRITES = 1e8, 1000.0, 500.0
BASE = b'the initramfs'
_SCHEDULE = re.compile(rb'calibrate\n|schedule [\d.]+ [\d.]+ [\d.]+\n(?:[^\n\0]+\n)*')


@dataclasses.dataclass
class Guest:
    """A VM of ours, which boots when it is created.

    :param schedule: the lines of it
    """

    uuid: str
    role: str
    born: float
    schedule: list
    died: float = float('inf')

    def command(self, number):
        return self.schedule[number + 1] if self.windows > number >= 0 else '-'

    @property
    def windows(self):
        return len(self.schedule) - 1

    @property
    def times(self):
        return map(float, self.schedule[0].split()[1:])


def unit(command):
    """Return seconds of a unit alone, reads and writes in it, and the seconds between arrivals."""
    fields = dict(one.split('=') for one in command.split()[1:])
    reads, writes = float(fields['reads']), float(fields['writes'])
    cpu = float(fields['cpu']) / ITERATIONS
    return (cpu + reads / READS + writes / WRITES + 1e-6, reads, writes, cpu,
            float(fields['period']) * 1e-6)


class Cloud:
    """The cloud; ``compute`` and ``image`` are its services, as openstacksdk has them.

    :param slower: by how much each takes longer beside another that is busy all the time
    """

    current_project_id = 'ours'

    def __init__(self, slower=1.0):
        self.now = 1_000_000.0
        self.slower = slower
        self.compute = types.SimpleNamespace(**{
            name: self._service(name, '_nova') for name in ('get', 'post', 'delete')})
        self.image = types.SimpleNamespace(**{
            name: self._service(name, '_glance') for name in ('get', 'post', 'put', 'delete')})
        self.guests = {}            # all that ever were
        self.servers = {}
        self.images = {}
        self.flavors = {'small': {'id': 'small', 'name': 'small'}}
        self.asked = []
        self.resolution = POLLING
        # What goes wrong: a status by (method, beginning of a path); then the rest.
        self.refused = {}
        self.faults = []            # of the next servers
        self.clock_off = 0.0
        self.mute = False
        self.unpolled = False
        self.lost = set()           # windows that no sample is of in the first round
        self.lost_later = set()     # likewise in those after it
        self.rounds = 0

    def clock(self):
        return self.now

    def sleep(self, seconds):
        self.now += seconds

    # Services

    def _service(self, method, handler):
        def ask(path, params=None, json=None, data=None, headers=None, microversion=None):
            query = {key: value for key, value in (params or {}).items()}
            self.asked.append((method, path, query or json))
            for (refused, beginning), status in self.refused.items():
                if refused == method and path.startswith(beginning):
                    return _answer(status, {'forbidden': {'message': 'not for you'}})
            return getattr(self, handler)(method, path, query, json, data)
        return ask

    def _nova(self, method, path, query, body, data):
        if path == '/servers/detail':
            found = [one for one in self.servers.values()
                     if (one['tenant_id'] == 'ours' or 'all_tenants' in query)
                     and one['OS-EXT-SRV-ATTR:host'] == query.get(
                         'host', one['OS-EXT-SRV-ATTR:host'])
                     and re.match(query.get('name', ''), one['name'])]
            return _answer(200, {'servers': found})
        if path == '/flavors' and method == 'get':
            return _answer(200, {'flavors': list(self.flavors.values())})
        if path == '/flavors':
            made = {'id': 'f%d' % len(self.flavors), **body['flavor']}
            self.flavors[made['id']] = made
            return _answer(200, {'flavor': made})
        if path == '/servers':
            return self._create(body['server'])
        if path.endswith('/action'):
            return _answer(200, {'output': self._console(self.guests[path.split('/')[2]])})
        kind, uuid = path.split('/')[1:]
        known = {'servers': self.servers, 'flavors': self.flavors}[kind]
        if uuid not in known:
            return _answer(404, {})
        if method == 'delete':
            if uuid in self.guests:
                self.guests[uuid].died = self.now
            del known[uuid]
            return _answer(204, None)
        return _answer(200, {'server': known[uuid]})

    def _create(self, server):
        uuid = 'vm-%d' % len(self.guests)
        made = {'id': uuid, 'name': server['name'], 'tenant_id': 'ours', 'status': 'ACTIVE',
                'OS-EXT-SRV-ATTR:host': server['host'], 'metadata': server['metadata']}
        if self.faults:
            made.update(status='ERROR', fault={'message': self.faults.pop(0)})
        self.servers[uuid] = made
        assert server['flavorRef'] in self.flavors and server['networks'] == 'none'
        disk = self.images[server['imageRef']]
        assert disk['kernel_id'] in self.images
        ramdisk = self.images[disk['ramdisk_id']]['content']
        assert ramdisk.startswith(BASE)
        text = _SCHEDULE.search(gzip.decompress(ramdisk[len(BASE):]))[0].decode()
        self.guests[uuid] = Guest(uuid, server['name'].rsplit('-', 1)[1], self.now,
                                  text.splitlines())
        self.rounds += server['name'].endswith('background')
        return _answer(202, {'server': {'id': uuid}})

    def _glance(self, method, path, query, body, data):
        if method == 'get':
            return _answer(200, {'images': [
                one for one in self.images.values()
                if all(one.get(key) == value for key, value in query.items() if key != 'limit')]})
        if method == 'post':
            made = {'id': 'image-%d' % len(self.asked), 'owner': 'ours', **body}
            self.images[made['id']] = made
            return _answer(201, made)
        uuid = path.split('/')[2]
        if method == 'put':
            self.images[uuid]['content'] = data
            return _answer(204, None)
        return _answer(204 if self.images.pop(uuid, None) else 404, None)

    # Guests

    def _rate(self, guest, number, begin):
        """Return units a second and seconds of one, what it consists of; None for silence."""
        command = guest.command(number)
        if command == '-':
            return None
        alone, reads, writes, cpu, period = unit(command)
        beside = 0.0
        for other in self.guests.values():
            if other is not guest and other.born < begin < other.died and (
                    other.command(number) != '-'):
                busy, *_rest, between = unit(other.command(number))
                beside = min(1.0, busy / between) if between else 1.0
        seconds = alone * (1 + self.slower * beside)
        return 1 / max(seconds, period), seconds, reads, writes, cpu

    def _console(self, guest):
        if self.mute:
            return ''
        lines = ['[    0.1] Linux', 'tracon ready %.3f 1 ok' % (guest.born + 20 + self.clock_off)]
        if self.now < guest.born + 20:
            lines.pop()
        elif guest.schedule[0] == 'calibrate':
            lines.append('tracon calibrated %.0f %.1f %.1f ok' % (ITERATIONS, READS, WRITES))
        else:
            start, length, settle = guest.times
            for number in range(guest.windows):
                begin = start + number * length
                rate = self._rate(guest, number, begin)
                if rate is None or not guest.born + 20 < begin <= self.now - length:
                    continue
                units = round(rate[0] * (length - settle))
                lines.append('tracon window %d %.3f %d %d %d %d %d ok' % (
                    number, begin, (length - settle) * 1e9, units, units * rate[1] * 1e9,
                    units * rate[2], units * rate[3]))
        return '\r\n'.join(lines) + '\r\ntracon wind'

    def _counted(self, guest, at):
        """Return what was counted of a guest by then: seconds of CPU, reads, writes."""
        total = np.zeros(3)
        if guest.schedule[0] == 'calibrate':
            return total
        start, length, _settle = guest.times
        for number in range(guest.windows):
            begin = start + number * length
            rate = self._rate(guest, number, begin)
            passed = min(max(at - begin, 0.0), length)
            if rate is not None and passed > 0:
                total += passed * rate[0] * np.array([rate[4], rate[2], rate[3]])
        return total

    def read(self, since, until, meters):
        """Return samples as the reader of Gnocchi does: by the bucket that they are in."""
        assert list(meters) == [one.name for one in collector.METERS]
        names, row, at, values = [], [], [], []
        for guest in self.guests.values():
            bucket = np.ceil(max(since, guest.born) / POLLING) * POLLING
            while bucket < min(until, guest.died, self.now - 12.0) and not self.unpolled:
                taken = bucket + 3.0
                cpu, reads, writes = self._counted(guest, taken)
                if not self._is_lost(guest, taken):
                    names.append(guest.uuid)
                    row.append(list(dict.fromkeys(names)).index(guest.uuid))
                    at.append(bucket)
                    values.append([taken * 1e9, cpu * 1e9, cpu * 1e8, cpu * 1e8, reads, writes,
                                   reads / READS * 1e9, writes / WRITES * 1e9])
                bucket += POLLING
        return samples.Readings(
            tuple(dict.fromkeys(names)), tuple(meters), np.array(row, dtype=np.intp),
            np.array(at), np.array(values).reshape(len(row), len(meters)))

    def _is_lost(self, guest, taken):
        if guest.schedule[0] == 'calibrate':
            return False
        start, length, _settle = guest.times
        return (taken - start) // length in (self.lost_later if self.rounds > 1 else self.lost)


def _answer(status, body):
    response = requests.Response()
    response.status_code = status
    response.url = 'http://synthetic'
    response.headers['Content-Type'] = 'application/json'
    response._content = b'' if body is None else json.dumps(
        body, default=lambda value: parse.quote(value)).encode()
    return response


def built(folder):
    """Return the parts of guests, in a folder."""
    kernel, initramfs = pathlib.Path(folder) / 'kernel', pathlib.Path(folder) / 'initramfs'
    kernel.write_bytes(b'the kernel')
    initramfs.write_bytes(BASE)
    return image.Image(kernel, '1', initramfs, kernel)
