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

"""Recorded statistics: what was recorded, and as a connection that replays it."""

import copy
import json
import pathlib

RECORDED = pathlib.Path(__file__).parent / 'recorded'


def read(name='domains.json'):
    return json.loads((RECORDED / name).read_text())


def stats(name, poll=0):
    """Return the recorded statistics of one guest.

    :param poll: 0, 1, or "occupied"
    """
    document = read()
    answers = document['occupied'] if poll == 'occupied' else document['polls'][poll]
    return next(found for guest, _uuid, found in answers['domains'] if guest == name)


def uuid(name):
    return next(found for guest, found, _stats in read()['polls'][0]['domains'] if guest == name)


class Domain:

    def __init__(self, name):
        self._name = name

    def UUIDString(self):
        return self._name

    def ID(self):
        return 1

    def name(self):
        return self._name

    def vcpuPinInfo(self):
        return [(True,) * 4]


class Connection:
    """Gives one recorded answer after the other, the last of them again and again.

    :param answers: each (UUID, statistics) of the domains, or an exception to be raised
    """

    def __init__(self, *answers):
        self.answers = list(answers)
        self.calls = []
        self.alive = True

    def isAlive(self):
        return self.alive

    def getAllDomainStats(self, *arguments):
        self.calls.append(arguments)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return [(Domain(uuid), copy.deepcopy(found)) for uuid, found in answer]


def failure(text):
    """Return an error of libvirt's that says so; by itself it says what went wrong last."""
    # Who only reads what was recorded needs no libvirt.
    import libvirt
    libvirt.virResetLastError()
    return libvirt.libvirtError(text)


def polls():
    """Return the recorded polls, as answers of a :class:`Connection`."""
    return [[(uuid, found) for _name, uuid, found in poll['domains']]
            for poll in read()['polls']]
