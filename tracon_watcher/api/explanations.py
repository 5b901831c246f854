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

"""Resource for explanations, and the gate that bounds how many are computed at a time."""

from __future__ import annotations

import contextlib
import threading
from typing import Any, Callable, Iterator, Mapping, Protocol, Sequence

import webob

from tracon_watcher.api import faults
from tracon_watcher.api import parameters
from tracon_watcher.api import policies
from tracon_watcher.api import state as states
from tracon_watcher.placement import assessment
from tracon_watcher.placement import explanation

#: Seconds after which a client may try again.
_AGAIN = 5


class ConcurrencyLimit:
    """Lets some through, has as many wait, and refuses the others at once.

    All threads of the API could otherwise wait here, and none would answer anything else.

    :param at_once: requests that work at the same time, and that wait
    :param patience: seconds that one waits
    """

    def __init__(self, at_once: int = 2, patience: float = 10.0) -> None:
        self._room = threading.BoundedSemaphore(at_once)
        self._places = threading.BoundedSemaphore(2 * at_once)
        self._patience = patience

    @contextlib.contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a turn.

        :raises tracon_watcher.api.faults.Unavailable: when too many work and wait
        """
        if not self._places.acquire(blocking=False):
            raise faults.Unavailable('Too many such questions are being worked out.', _AGAIN)
        try:
            if not self._room.acquire(timeout=self._patience):
                raise faults.Unavailable('Too many such questions are being worked out.', _AGAIN)
            try:
                yield
            finally:
                self._room.release()
        finally:
            self._places.release()


_PARAMETERS = ('limit', 'now')
_MOST = 10
#: Times that hosts are judged again, with one thing changed each, for one answer.
_TRIALS = 600

Document = dict[str, Any]


class Records(Protocol):
    """Where decisions, breaches, and what audits told and recommended are kept."""

    def find(self, request_or_vm: str) -> Sequence[Mapping[str, Any]]:
        """Return the decisions of a request or on a VM, ``tracon-decision/1``, the latest first.

        Empty when there is none; what was settled later stands in ``settled``.
        """
        ...

    def moves(self, wanted: Mapping[str, str | None], marker: str | None,
              limit: int) -> Sequence[Mapping[str, Any]] | None:
        """Return moves that audits recommended, the latest first.

        :param wanted: ``audit``, ``state`` and ``vm``, None for any
        :param marker: id of the move after which they begin
        :return: None where there is no such move
        """
        ...

    def told(self, vm: str, host: str | None) -> Sequence[Sequence[Mapping[str, Any]]]:
        """Return three lists of documents for the ledger of a VM.

        They are those of the latest decisions that name it, what each audit told last, and the
        latest episodes for it.

        :param host: where it is, None where that is not known
        """
        ...

    def breaches(self, vms: Sequence[str], now: float) -> Mapping[str, float] | None:
        """Return for how many seconds of this month VMs were in breach; None: not known.

        VMs that were not are left out.
        """
        ...

    def audit(self, uuid: str | None) -> Mapping[str, Any] | None:
        """Return what an audit, or the latest one, told, ``tracon-audit/1``; None: nothing."""
        ...


class Explanations:
    """Answers GET /v1/explanations/{request_or_vm}.

    :param gate: for those that judge hosts again
    """

    def __init__(self, records: Records, gate: ConcurrencyLimit) -> None:
        self._records = records
        self._gate = gate

    def show(self, request: webob.Request, caller: policies.Caller, known: states.States,
             name: str) -> Document:
        query = parameters.Query(request.GET, _PARAMETERS)
        caller.require(policies.EXPLANATIONS_SHOW, 'explanations', caller.project)
        open_to = caller.may(policies.EXPLANATIONS_NEIGHBOURS)
        # A caller who may see everything is told what was decided even while there is no view;
        # whose a VM is, is known from the view alone.
        state = known.present() if open_to else known.now()
        most = min(query.positive('limit') or _MOST, _MOST)
        now = query.boolean('now')
        if now and not open_to:
            raise faults.Forbidden(policies.EXPLANATIONS_NEIGHBOURS, 'the parameter now')
        decisions: list[Mapping[str, Any]] = []
        if not now:
            decisions = [one for one in self._records.find(name)
                         if caller.may(policies.EXPLANATIONS_SHOW, _project(one, state))][:most]
        row = None if state is None else state.cluster.resident_index.get(name)
        # To judge many hosts takes seconds: who says now=false wants recorded decisions alone.
        if (not decisions and now is not False and open_to and state is not None
                and row is not None):
            decisions = [explanation.of_now(state.assessor, name, state.now)]
        if not decisions:
            raise faults.NotFound(
                f'No decision on {name} is recorded' + (
                    '.' if open_to else ', or it is none of your project.'),
                'Give a request id (req-…) or the uuid of a VM; decisions are kept for a time.')
        with self._gate.turn():
            found = [explained(one, state) if open_to
                     else _of_the_vm_itself(explanation.explain(one), state)
                     for one in decisions]
        return {'explanations': found, 'state': None if state is None else state.describe()}


def explained(decision: Mapping[str, Any], state: states.State | None,
              judged: assessment.Assessment | None = None) -> Document:
    """Return an explanation for a caller who may know of all VMs and hosts.

    :param judged: the judgement of all hosts of the state, if it is at hand
    """
    if state is None:
        found = explanation.explain(decision)
    else:
        found = explanation.explain(decision, state.assessor, state.identity, state.now, _TRIALS,
                                    judged)
    call = _call(state, found['vm'])
    for host in found['hosts']:
        host['why'] = explanation.why(host, call)
        host['what_would_differ'] = explanation.what_would_differ(host, call)
        for resident in host.get('residents', ()):
            resident['name'] = _name(state, resident['vm'])
    found['at'] = states.iso(found['at'])
    found['name'] = _name(state, found['vm'])
    return found


def _of_the_vm_itself(found: Document, state: states.State | None) -> Document:
    """Return what a tenant may know: nothing of other VMs, and no host.

    It is put together from what is allowed, not by taking away what is not.
    """
    reasons = {'own_limit': 0, 'limit_of_another_vm': 0}
    chosen: Document | None = None
    for host in found['hosts']:
        worst = host['worst']
        if host['refused'] and isinstance(worst, Mapping):
            own = worst.get('vm') in (assessment.NEWCOMER, found['vm'])
            reasons['own_limit' if own else 'limit_of_another_vm'] += 1
        if host['chosen']:
            chosen = {name: host[name] for name in ('rank', 'slowdown', 'iops_ratio')}
    return {'schema': found['schema'], 'id': found['id'], 'request': found['request'],
            'vm': found['vm'], 'name': _name(state, found['vm']), 'at': states.iso(found['at']),
            'operation': found['operation'], 'considered': found['considered'],
            'refused': found['refused'], 'unknown': found['unknown'],
            'refused_because_of': reasons, 'chosen': chosen}


def _project(decision: Mapping[str, Any], state: states.State | None) -> str | None:
    """Return the project of the VM of a decision; None where it is unknown."""
    if state is not None:
        found = state.view.vms.get(str(decision.get('vm')))
        if found is not None:
            return found.project or None
    project = decision.get('project')
    return project if isinstance(project, str) and project else None


def _name(state: states.State | None, uuid: Any) -> str | None:
    found = None if state is None else state.view.vms.get(str(uuid))
    return None if found is None else found.name


def _call(state: states.State | None, own: Any) -> Callable[[str], str]:
    """Return what VMs are called by: name and uuid."""
    def call(vm: str) -> str:
        if vm in (assessment.NEWCOMER, own):
            return 'the VM itself'
        name = _name(state, vm)
        return f'{name} ({vm})' if name else vm

    return call
