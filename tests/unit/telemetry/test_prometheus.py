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

"""The reader against a server that answers like Prometheus, and fails in many ways."""

import json
import re
import unittest

from keystoneauth1 import adapter
from keystoneauth1 import session
from keystoneauth1 import token_endpoint
import numpy as np

from tests.unit.telemetry import http_server
from tests.unit.telemetry.http_server import Answer
from tracon_watcher import errors
from tracon_watcher.telemetry import prometheus
from tracon_watcher.telemetry import rest
from tracon_watcher.telemetry import samples

PATIENT = rest.Timeouts(seconds=120.0, connecting=120.0, attempts=2, pause=0.0)
IMPATIENT = rest.Timeouts(seconds=0.2, connecting=0.2, attempts=2, pause=0.0)
START = 1_800_000_000
METERS = ('tracon.clock', 'tracon.cpu.guest')
NAMES = ('ceilometer_tracon_clock', 'ceilometer_tracon_cpu_guest')


def success(result, kind='matrix', **more):
    return {'status': 'success', 'data': {'resultType': kind, 'result': result}, **more}


class Prometheus:
    """Answers the two forms of queries that the reader asks."""

    def __init__(self):
        self.series = []
        self.spoil = lambda request: None
        self.warnings = []

    def add(self, resource, name=NAMES[0], values=((START, '1e15'), (START + 60, '1.00006e15')),
            **labels):
        self.series.append(({'__name__': name, 'resource': resource, **labels}, values))

    def __call__(self, request):
        spoilt = self.spoil(request)
        if spoilt is not None:
            return spoilt
        query = request.query['query']
        counting = re.fullmatch(r'max\(count by \(__name__\) \(\{__name__=~"(.*?)"(.*?)\} @ '
                                r'[\d.]+\)\)', query)
        if counting:
            names = counting[1].split('|')
            counts = [sum(labels['__name__'] == name for labels, values in self.series)
                      for name in names]
            return success([{'metric': {}, 'value': [START, str(max(counts))]}]
                           if max(counts) else [], 'vector')
        asked = re.fullmatch(r'([\w:]+)\{(?:(\w+)=~"(.*?)")?(.*)\}\[(\d+)s\] @ ([\d.]+)', query)
        assert asked, query
        until, window = float(asked[6]), int(asked[5])
        only = dict(re.findall(r'(\w+)="(.*?)"', asked[4]))
        return success([
            {'metric': labels, 'values': [
                [at, value] for at, value in values if until - window <= at <= until]}
            for labels, values in self.series
            if labels['__name__'] == asked[1]
            and (asked[2] is None or re.fullmatch(asked[3], labels.get(asked[2], '')))
            and all(labels.get(label) == value for label, value in only.items())],
            **({'warnings': self.warnings} if self.warnings else {}))


class TestPrometheusReader(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.prometheus = Prometheus()
        self.server = http_server.Server(self.prometheus)
        self.addCleanup(self.server.stop)
        self.clock = http_server.Clock()

    def reader(self, patience=PATIENT, service=None, **settings):
        service = service or rest.Service(rest.plain(self.server.url), 'Prometheus', patience,
                                          lambda seconds: None)
        return prometheus.PrometheusReader(service, prometheus.Settings(**settings), self.clock)

    def read(self, reader=None, since=START, until=START + 300, meters=METERS):
        return (reader or self.reader()).read(since, until, meters)

    def test_samples_of_all_resources(self):
        self.prometheus.add('vm-1')
        self.prometheus.add('vm-1', NAMES[1], [(START, '5'), (START + 60, '7.5')])
        self.prometheus.add('vm-2', NAMES[1], [(START + 31.5, '9')])
        self.prometheus.add('vm-3', 'ceilometer_memory_usage')
        reader = self.reader()
        found = self.read(reader)
        self.assertEqual(('vm-1', 'vm-2'), found.resources)
        np.testing.assert_array_equal([0, 0, 1], found.row)
        np.testing.assert_array_equal([START, START + 60, START + 31.5], found.at)
        np.testing.assert_array_equal([[1e15, 5], [1.00006e15, 7.5], [np.nan, 9]], found.values)
        self.assertEqual((2, 1, 0, (), None), (
            reader.last.resources, reader.last.parts, reader.last.failed, reader.last.warnings,
            reader.last.first))
        self.assertEqual(30.0, reader.resolution)
        # One query for each meter, and one for how large the answers will be.
        self.assertEqual(['GET'] * 3, [request.method for request in self.server.requests])

    def test_since_is_in_and_until_is_out(self):
        self.prometheus.add('vm', values=[(START + 0.5 * n, str(n)) for n in range(9)])
        found = self.read(since=START + 1, until=START + 2.5)
        np.testing.assert_array_equal([START + 1, START + 1.5, START + 2], found.at)

    def test_a_vm_under_two_sets_of_labels_is_one(self):
        self.prometheus.add('vm', values=[(START, '5')], vm_instance='h1')
        self.prometheus.add('vm', values=[(START, '6'), (START + 60, '7')], vm_instance='h2')
        found = self.read()
        self.assertEqual(('vm',), found.resources)
        np.testing.assert_array_equal([6.0, 7.0], found.values[:, 0])

    def test_many_are_asked_for_in_parts(self):
        ids = [f'{number:032x}' for number in range(300)] + ['compute-1', 'a', 'Z', '', 'host.0']
        for resource in ids:
            for name in NAMES:
                self.prometheus.add(resource, name)
        whole = self.read()
        for series, parts in ((1000, 1), (100, 17), (3, 259)):
            self.server.requests.clear()
            reader = self.reader(series=series)
            found = self.read(reader)
            self.assertEqual(parts, reader.last.parts)
            self.assertEqual(1 + 2 * parts, len(self.server.requests))
            self.assertEqual(set(ids) - ({''} if parts > 1 else set()), set(found.resources))
            self.assertEqual(2 * len(found.resources), len(found.row))
        self.assertEqual(len(ids), len(whole.resources))

    def test_nothing_there_is_no_error(self):
        reader = self.reader()
        found = self.read(reader)
        self.assertEqual(((), (0, 2)), (found.resources, found.values.shape))
        self.assertIsNone(reader.last.first)
        self.server.requests.clear()
        self.assertEqual((), self.read(meters=()).resources)
        self.assertEqual([], self.server.requests)

    def test_values_that_are_none(self):
        self.prometheus.add('vm', values=[(START, 'NaN'), (START + 15, '+Inf'), (START + 30, '4')])
        found = self.read()
        np.testing.assert_array_equal([START + 15, START + 30], found.at)
        np.testing.assert_array_equal([np.inf, 4.0], found.values[:, 0])

    def test_something_else_of_the_same_name_is_left_out(self):
        self.prometheus.add('vm')
        self.prometheus.series.append(({'__name__': NAMES[0], 'job': 'x'}, [(START, '1')]))
        self.assertEqual(('vm',), self.read().resources)

    def test_what_was_asked_is_told_beside_what_came_instead(self):
        for labels in ({'resource_id': 'vm', 'job': 'x'}, {'uuid': 'vm'}):
            self.prometheus.series.append(({'__name__': NAMES[0], **labels}, [(START, '1')]))
        found = self.read(self.reader(only={'cloud': 'here'}))
        self.assertEqual(
            f'Prometheus at {self.server.url}/api/v1/query was asked for series of '
            'ceilometer_tracon_clock{cloud="here"} and others with the label resource',
            found.asked)
        self.assertRegex(self.read().asked, r'label resource \(one came with __name__, job, '
                         r'resource_id instead\)$')

    def test_names_labels_and_conditions(self):
        self.prometheus.add('x', 'mine:tracon_clock', uuid='vm', cloud='here "now"\\')
        found = self.read(self.reader(prefix='mine:', label='uuid',
                                      only={'cloud': 'here "now"\\', 'region': ''}),
                          meters=METERS[:1])
        self.assertEqual((), found.resources)
        query = self.server.requests[-1].query['query']
        self.assertEqual('mine:tracon_clock{cloud="here \\"now\\"\\\\",region=""}[301s] @ '
                         f'{START + 300}.000', query)
        found = self.read(self.reader(prefix='mine:', label='uuid'), meters=METERS[:1])
        self.assertEqual(('vm',), found.resources)

    def test_what_would_be_another_query_is_refused(self):
        for settings in ({'prefix': 'a{b="c"} or '}, {'prefix': ''}, {'label': 'a-b'},
                         {'label': ''}, {'only': {'a"': 'b'}}):
            with self.assertRaises(errors.InvalidOption):
                self.reader(**settings)
        for meter in ('a{b}', 'a b', 'a"'):
            with self.assertRaisesRegex(errors.InvalidOption, 'meter='):
                self.read(meters=[meter])

    def test_nothing_can_be_read(self):
        self.prometheus.add('vm')
        error = {'status': 'error', 'errorType': 'execution', 'error': 'too many samples'}
        for spoil, said in (
                (Answer(b'', 500), '500 came'),
                (Answer(error, 422), '422 came .*too many samples'),
                (Answer(error, 503), '503 came .*too many samples.* attempts: 2'),
                (Answer(error), 'came .*too many samples'),
                (Answer([], delay=3600), 'timed out'),
                (Answer(b''), 'empty body'),
                (Answer(b'<!DOCTYPE html><html></html>'), 'HTML'),
                (Answer(reset=True), 'Connection aborted|no connection'),
                (Answer(json.dumps(success([])).encode(), cut=9), 'only a part'),
                (Answer(b'', 302, {'Location': '/graph'}), 'sent on'),
                (Answer({'versions': []}), "came {'versions'")):
            self.prometheus.spoil = lambda request, spoil=spoil: spoil
            with self.assertRaisesRegex(samples.TelemetryUnavailable, said) as caught:
                self.read(self.reader(IMPATIENT if said == 'timed out' else PATIENT))
            self.assertIn(f'{self.server.url}/api/v1/query', str(caught.exception))

    def test_answers_of_another_schema(self):
        series = {'metric': {'resource': 'vm'}, 'values': [[START, '1']]}
        for answer in ([], 7, None, {}, {'status': 'success'}, {'status': 'success', 'data': []},
                       success(None), success({}), success([series], 'vector'), success([[]]),
                       success([5]), success([{}]), success([{'metric': 5, 'values': []}]),
                       success([{**series, 'values': None}]), success([{**series, 'values': [5]}]),
                       success([{**series, 'values': [[START]]}]),
                       success([{**series, 'values': [[START, 'x']]}]),
                       success([{**series, 'values': [[None, '1']]}]),
                       success([{'metric': series['metric'], 'histograms': []}]),
                       success([series], warnings='x')):
            self.prometheus.spoil = lambda request, answer=answer: None if (
                'count' in request.query['query']) else Answer(answer)
            with self.assertRaisesRegex(rest.Unanswered, 'api/v1/query: came .*check that'):
                self.read()
        for value in ([], {}, [START], [START, 'x'], None):
            self.prometheus.spoil = lambda request, value=value: success(
                [{'metric': {}, 'value': value}], 'vector')
            with self.assertRaises(rest.Unanswered):
                self.read()

    def test_a_part_without_one_of_its_meters_is_none(self):
        # Rates without the clock would be wrong rather than unknown.
        self.prometheus.add('vm')
        self.prometheus.add('vm', NAMES[1])
        self.prometheus.spoil = lambda request: Answer(b'', 500) if request.query[
            'query'].startswith(NAMES[1]) else None
        with self.assertRaises(samples.TelemetryUnavailable):
            self.read()

    def test_one_part_that_fails_costs_its_resources_alone(self):
        for digit in '0123456789abcdef':
            for name in NAMES:
                self.prometheus.add(f'vm-{digit}', name)
        self.prometheus.spoil = lambda request: Answer({'status': 'error'}, 422) if (
            f'{NAMES[1]}{{resource=~".*7"' in request.query['query']) else None
        reader = self.reader(series=10)
        with self.assertLogs(prometheus.LOG, 'WARNING') as logs:
            found = self.read(reader)
        self.assertEqual(15, len(found.resources))
        self.assertNotIn('vm-7', found.resources)
        self.assertEqual((17, 1), (reader.last.parts, reader.last.failed))
        self.assertEqual(1, len(logs.output))

    def test_when_prometheus_has_gone_not_every_part_is_waited_for(self):
        for digit in '0123456789abcdef':
            self.prometheus.add(f'vm-{digit}')
        self.prometheus.spoil = lambda request: Answer(reset=True) if (
            len(self.server.requests) > 4) else None
        reader = self.reader(series=10)
        with self.assertLogs(prometheus.LOG, 'WARNING'):
            found = self.read(reader, meters=METERS[:1])
        self.assertEqual(('vm-0', 'vm-1', 'vm-2'), found.resources)
        self.assertEqual((17, 14), (reader.last.parts, reader.last.failed))
        self.assertEqual(4 + 2, len(self.server.requests))

    def test_a_part_that_is_never_answered_does_not_keep_the_others_waiting(self):
        for digit in '0123456789abcdef':
            self.prometheus.add(f'vm-{digit}')
        self.prometheus.spoil = lambda request: Answer(reset=True) if (
            'resource=~".*3"' in request.query['query']) else None
        reader = self.reader(series=10)
        with self.assertLogs(prometheus.LOG, 'WARNING'):
            self.assertEqual(3, len(self.read(reader, meters=METERS[:1]).resources))
            self.assertEqual(15, len(self.read(reader, meters=METERS[:1]).resources))
            self.assertEqual(15, len(self.read(reader, meters=METERS[:1]).resources))

    def test_a_round_has_an_end(self):
        for digit in '0123456789abcdef':
            self.prometheus.add(f'vm-{digit}')

        def spoil(request):
            self.clock.now += 10.0
        self.prometheus.spoil = spoil
        reader = self.reader(series=10, seconds=45.0)
        with self.assertLogs(prometheus.LOG, 'WARNING') as logs:
            found = self.read(reader, meters=METERS[:1])
        self.assertEqual(4, len(found.resources))
        self.assertIn('queries are left after 45 s', logs.output[0])
        # Those that were left come first in the next one, so that none waits for ever.
        read = set(found.resources)
        with self.assertLogs(prometheus.LOG, 'WARNING'):
            for _round in range(4):
                read |= set(self.read(reader, meters=METERS[:1]).resources)
        self.assertEqual(16, len(read))

    def test_warnings_are_passed_on_once(self):
        self.prometheus.add('vm')
        self.prometheus.warnings = ['store 7 is away']
        reader = self.reader()
        with self.assertLogs(prometheus.LOG, 'WARNING') as logs:
            found = self.read(reader)
        self.assertEqual(('vm',), found.resources)
        self.assertEqual(('store 7 is away',), reader.last.warnings)
        self.assertEqual(1, len(logs.output))

    def test_aetos_behind_keystone(self):
        self.prometheus.add('vm')
        keystone = session.Session(
            token_endpoint.Token(f'{self.server.url}/prometheus', 'a-token'))
        service = rest.Service(adapter.Adapter(keystone, service_type='metric-storage'), 'Aetos')
        self.assertEqual(('vm',), self.read(self.reader(service=service)).resources)
        for request in self.server.requests:
            self.assertEqual('a-token', request.headers['X-Auth-Token'])
            self.assertEqual('/prometheus/api/v1/query', request.path)
            # Its 1.0 knows no other parameter, and only this method.
            self.assertEqual(({'query'}, 'GET'), (set(request.query), request.method))

    def test_basic_authentication(self):
        service = rest.Service(rest.plain(self.server.url, 'admin', 'secret'), 'Prometheus')
        self.read(self.reader(service=service))
        self.assertEqual('Basic YWRtaW46c2VjcmV0',
                         self.server.requests[0].headers['Authorization'])
