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

"""The whole API, called as a WSGI application, over a synthetic cloud; tokens come from a fixture.

Only where keystonemiddleware would fetch a token from Keystone is something put in its place: its
own fixture for this purpose.
"""

import dataclasses
import json
import time
from urllib import parse

import fixtures
from keystoneauth1 import fixture as tokens
from keystonemiddleware import fixture as middleware
import numpy as np
from oslo_config import cfg
import testtools
import webob

from tests import synthetic
from tracon_watcher.api import application
from tracon_watcher.engine import probes
from tracon_watcher.engine import view as views
from tracon_watcher.placement import assessment
from tracon_watcher.placement import cluster
from tracon_watcher.placement import limits
from tracon_watcher.placement import newcomer_profiles
from tracon_watcher.placement import plan as audits

VM = np.array([300.0, 50.0, 0.5, 0.2])
IDLE = VM / 10
OWN, OTHER = 'a' * 32, 'b' * 32
FLAVOR, IMAGE = 'm1.small', '9d0c1b7e-0000-4000-8000-000000000001'
EPOCH, VERSION = 3, 7
AUDIT = '6b0ac1c5-0000-4000-8000-000000000001'
OUTLOOK = {'vms': 5, 'in_breach': 2, 'mean_slowdown': 1.3, 'worst_slowdown': 1.7, 'harm': 1.1}

#: What the roles of the policy tests are called, and the token of each.
ADMIN, READER, MEMBER, STRANGER, UNRELATED = 'admin', 'global', 'member', 'stranger', 'unrelated'


def cloud(now, version=VERSION, learnt=None):
    """Return the view of a small cloud of two projects.

    On ``alpha`` a tenant's web server suffers from another tenant's batch job, on ``beta`` from
    one of its own; of ``gamma`` no cores are known, and ``delta`` is empty.

    :param learnt: by host type
    """
    hosts = {
        'alpha': (('web', OWN, VM, limits.Limits(1.5, 0.2)), ('batch', OTHER, VM * 3, None)),
        'beta': (('db', OWN, VM, None), ('cron', OWN, VM, None), ('small', OTHER, IDLE, None)),
        'gamma': (('strange', OTHER, VM, None),), 'delta': ()}
    state = cluster.build([
        cluster.Host(name, tuple(
            cluster.Resident(identity(vm), profile, limits.NONE if limit is None else limit)
            for vm, _project, profile, limit in vms),
            *(('old', cluster.LOCAL, now) if name == 'gamma'
              else (synthetic.HOST_TYPE, cluster.LOCAL, now, 1)))
        for name, vms in hosts.items()], newcomer_profiles.learn(
            np.array([one[2] for vms in hosts.values() for one in vms]),
            [(project, FLAVOR, IMAGE) for vms in hosts.values()
             for _vm, project, _profile, _limit in vms]), version, now)
    known = {identity(vm): views.VM(identity(vm), vm, project, name, FLAVOR, IMAGE)
             for name, vms in hosts.items() for vm, project, _profile, _limit in vms}
    counters = np.full(len(state.uuids), np.nan)
    counters[state.resident_index[identity('web')]] = 1.4
    judged = assessment.Assessor(state, assessment.Settings(
        maximum_age=600.0, learnt=learnt or {}))
    return views.View(EPOCH, judged, judged, known, counters, 0.1, now)


def identity(name):
    """Return the uuid of a VM by its name."""
    return f'{name.encode().hex():0<8.8}-0000-4000-8000-{0:012}'


class Records:
    """Decisions, and what audits told, in memory."""

    def __init__(self):
        self.kept = []
        self.audits = []
        self.throttled = []
        self.recommended = []
        self.counted = {}

    def find(self, request_or_vm):
        return [one for one in self.kept
                if request_or_vm in (one.get('request'), one.get('vm'))]

    def moves(self, wanted, marker, limit):
        found = [one for one in self.recommended
                 if all(value in (None, one[name]) for name, value in wanted.items())]
        if marker is not None:
            places = [place for place, one in enumerate(found) if one['id'] == marker]
            if not places:
                return None
            found = found[places[0] + 1:]
        return found[:limit]

    def told(self, vm, host):
        return [one for one in self.kept if vm in str(one)], self.audits, [
            one for one in self.throttled if vm in one['slowdowns_before']
            and (one['vm'] == vm or one['vm'] is None and one['host'] == host)]

    def breaches(self, vms, now):
        return self.counted

    def audit(self, uuid):
        return next((one for one in self.audits if uuid in (None, one['audit'])), None)


def audit(now):
    """Return what an audit told of the small cloud."""
    return audits.read_audit({
        'schema': audits.SCHEMA, 'audit': AUDIT, 'at': now,
        'reason': 'max_migrations=1 is reached',
        'moves': [{'vm': identity('small'), 'source': 'beta', 'destination': 'delta'}],
        'before': OUTLOOK, 'after': {**OUTLOOK, 'in_breach': 1},
        'hosts': [
            {'host': 'alpha', 'harm': 0.7, 'breaches': [{
                'vm': identity('web'), 'response': 'slowdown', 'value': 1.62, 'limit': 1.5}],
             'options': [
                 {'vm': identity('batch'), 'ends': [identity('web')], 'destination': 'beta',
                  'hosts': 12, 'against': 'room', 'why': f'has no room beside {identity("db")}'},
                 {'vm': identity('web'), 'ends': [identity('web')], 'destination': None,
                  'hosts': 0, 'against': 'stays', 'why': 'is locked'}]},
            {'host': 'gamma', 'harm': 0.1, 'breaches': [], 'options': []}]})


def refusal(now, victim='web'):
    """Return a decision in which a host was refused since a VM there would have been in breach."""
    worst = {'vm': identity(victim), 'response': 'slowdown', 'before': 1.2, 'after': 1.9,
             'bound': 1.8, 'limit': 1.5}
    return {'schema': 'tracon-decision/1', 'id': 'd', 'request': 'req-1', 'vm': identity('batch'),
            'at': now, 'operation': 'create', 'outcome': 'refused', 'hosts': [
                {'host': 'alpha', 'refused': True, 'worst': worst},
                {'host': 'beta', 'refused': False, 'worst': worst},
                {'host': 'gamma', 'refused': True, 'worst': None},
                {'host': 'delta', 'refused': True, 'worst': {**worst, 'response': 'iops_ratio'}}]}


def episode(began, victim='web', **more):
    """Return an episode for the sake of a VM, which ended and was measured."""
    return {'host': 'alpha', 'resource': 'processor', 'vm': identity(victim), 'began_at': began,
            'ended_at': began + 90.0, 'before': 2.4, 'least': 0.3,
            'slowdowns_before': {identity(victim): 1.42},
            'slowdowns_after': {identity(victim): 1.08}, **more}


def removal(victim='web'):
    """Return the removal of a background VM that ends a breach."""
    return {'vm': identity('cron'), 'host': 'alpha', 'ends': [identity(victim)],
            'effects': [{'vm': identity(victim), 'before': 1.7, 'after': 1.3}]}


def move(now, number=1, **more):
    """Return a move of the small cloud that succeeded, measured once of twice."""
    slow = {'predicted': 1.62, 'lower': 1.55, 'upper': 1.7, 'in_breach': True}
    return {
        'id': f'move-{number}', 'vm': identity('batch'), 'audit': AUDIT, 'source': 'alpha',
        'destination': 'delta', 'state': 'succeeded', 'reason': 'ends 1 breaches',
        'decided_at': now - 400 - number, 'started_at': now - 390, 'ended_at': now - 360,
        'changes': [{'vm': identity('web'), 'relieved': True, 'before': slow, 'after': {
            'predicted': 1.0, 'lower': None, 'upper': None, 'in_breach': False}}],
        'outcomes': [
            {'delay': 300, 'due_at': now - 60, 'measured_at': now - 50, 'verdict': 'helped',
             'predicted': 0.48, 'measured': 0.4, 'slowdowns': {identity('web'): 1.07,
                                                               identity('batch'): float('nan')}},
            {'delay': 86400, 'due_at': now + 86040, 'measured_at': float('nan'), 'verdict': None,
             'predicted': float('nan'), 'measured': float('nan'), 'slowdowns': {}}], **more}


class ApiCase(testtools.TestCase):
    """Has an API, and can ask it in several roles."""

    def setUp(self):
        super().setUp()
        self.log = self.useFixture(fixtures.FakeLogger(level=10))
        self.now = time.time()
        self.view = cloud(self.now)
        self.decisions = Records()
        self.checks = {}
        self.keystone = self.useFixture(middleware.AuthTokenFixture())
        for name, token in roles().items():
            self.keystone.add_token(token, name)
        self.api = self.build()

    def build(self, **options):
        """Return the API; ``policy`` is what stands in policy.yaml."""
        directory = self.useFixture(fixtures.TempDir())
        path = directory.join('policy.yaml')
        with open(path, 'w', encoding='utf-8') as stream:
            json.dump(options.pop('policy', {}), stream)       # YAML, too
        with open(directory.join('tracon.conf'), 'w', encoding='utf-8') as stream:
            stream.write(f'[oslo_policy]\npolicy_file = {path}\n'
                         '[keystone_authtoken]\n'
                         'www_authenticate_uri = http://keystone.example/\n')
        self.conf = cfg.ConfigOpts()
        self.conf(['--config-file', stream.name])
        return application.build(lambda: self.view, self.decisions, self.conf, self.checks,
                                 clock=lambda: self.now, **options)

    def feel(self, host, memory, beyond=0.0):
        """Let a host's sensor feel something in the memory phase.

        :param memory: ``probes.Felt``
        :param beyond: log slowdown that this is beyond what the host's VMs explain
        """
        state = self.view.assessor.cluster
        contention = np.zeros((len(state.hosts), 4))
        contention[state.host_index[host], 0] = beyond
        judged = assessment.Assessor(dataclasses.replace(state, contention=contention),
                                     self.view.assessor.settings)
        self.view = dataclasses.replace(self.view, assessor=judged, felt={
            host: {**probes.SILENT, 'memory': memory}})

    def ask(self, path, token=ADMIN, method='GET', headers=(), **query):
        """Return the response to a request."""
        if query:
            path += '?' + parse.urlencode(query, doseq=True)
        request = webob.Request.blank(path, method=method, headers=dict(headers))
        if token is not None:
            request.headers['X-Auth-Token'] = token
        return request.get_response(self.api.application)

    def get(self, path, token=ADMIN, **query):
        """Return the document that is answered."""
        response = self.ask(path, token, **query)
        self.assertEqual(200, response.status_int, response.text)
        self.assertEqual('application/json', response.content_type)
        return json.loads(response.body)

    def refused(self, status, path, token=ADMIN, /, **query):
        """Return the one error of a request that fails."""
        response = self.ask(path, token, **query)
        self.assertEqual(status, response.status_int, response.text)
        self.assertEqual('application/json', response.content_type)
        (error,) = json.loads(response.body)['errors']
        self.assertEqual(status, error['status'])
        self.assertEqual(response.headers['X-Openstack-Request-Id'], error['request_id'])
        return error


def roles():
    """Return the token of each role."""
    found = {}
    for name, given, project in (
            (ADMIN, ('admin', 'manager', 'member', 'reader'), 'c' * 32),
            (MEMBER, ('member', 'reader'), OWN), ('auditor', ('reader',), OWN),
            (STRANGER, ('member', 'reader'), 'd' * 32), (UNRELATED, ('unrelated',), OWN),
            ('unrelated elsewhere', ('unrelated',), 'd' * 32)):
        token = tokens.V3Token(user_id=name, project_id=project)
        for role in given:
            token.add_role(name=role)
        found[name] = token
    for name, given in ((READER, ('reader',)), ('system admin', ('admin', 'member', 'reader'))):
        token = tokens.V3Token(user_id=name)
        token.set_system_scope()
        for role in given:
            token.add_role(name=role)
        found[name] = token
    for name, given in (('domain reader', ('reader',)), ('domain admin', ('admin', 'reader'))):
        token = tokens.V3Token(user_id=name, domain_id='default')
        for role in given:
            token.add_role(name=role)
        found[name] = token
    found['unscoped'] = tokens.V3Token(user_id='unscoped')
    return found
