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

"""The reader against a server that answers like Gnocchi, and fails in every way that one can."""

import datetime
import unittest
from unittest import mock
import uuid

import numpy as np

from tests.unit.telemetry import http_server
from tests.unit.telemetry.http_server import Answer
from tracon_watcher.telemetry import gnocchi
from tracon_watcher.telemetry import meters
from tracon_watcher.telemetry import rest
from tracon_watcher.telemetry import samples

PATIENT = rest.Timeouts(seconds=120.0, connecting=120.0, attempts=2, pause=0.0)
# For those who are not answered; a test machine may be busy.
IMPATIENT = rest.Timeouts(seconds=0.2, connecting=0.2, attempts=2, pause=0.0)
START = 1_800_000_000
CLOCK, GUEST = meters.CLOCK.name, meters.CPU_GUEST.name
BUSY = meters.HOST_BUSY.name


def stamp(seconds):
    return datetime.datetime.fromtimestamp(seconds, datetime.UTC).isoformat()


class Gnocchi:
    """Answers as Gnocchi 4.7 does, from what is in it."""

    def __init__(self):
        self.resources = {}
        self.series = {}
        self.spoil = lambda request: None
        self.limit = 1000

    def add(self, number, resource_type='instance', name=None, series=None, at=START):
        key = str(uuid.UUID(int=number))
        self.resources[key] = {'id': key, 'original_resource_id': name or key, 'ended_at': None,
                               'revision_start': stamp(at), 'type': resource_type}
        self.series[key] = series if series is not None else {
            CLOCK: [(START, 1e15), (START + 60, 1e15 + 6e10)],
            GUEST: [(START, 5e9), (START + 60, 8e9)]}
        return name or key

    def __call__(self, request):
        spoilt = self.spoil(request)
        if spoilt is not None:
            return spoilt
        if request.path.startswith('/v1/search/resource/'):
            return self.search(request)
        assert (request.method, request.path) == ('POST', '/v1/aggregates'), request.path
        return self.aggregates(request)

    def search(self, request):
        conditions = request.body.get('and', [request.body])
        found = [dict(resource) for key, resource in sorted(self.resources.items())
                 if resource['type'] == request.path.rpartition('/')[2]]
        for condition in conditions:
            (operator, operand), = condition.items()
            (field, value), = operand.items()
            found = [resource for resource in found if {
                '=': lambda one: one[field] == value, '>': lambda one: one[field] > value,
                '>=': lambda one: datetime.datetime.fromisoformat(one[field])
                >= datetime.datetime.fromisoformat(value)}[operator](resource)]
        for resource in found:
            del resource['type']
        return found[:min(int(request.query['limit']), self.limit)]

    def aggregates(self, request):
        names = [name for name, aggregation in request.body['operations'][1:]]
        wanted = [key for key in request.body['search']['in']['id'] if self.resources[key][
            'type'] == request.body['resource_type']]
        measures = {}
        for key in wanted:
            series = {name: {'last': [
                [stamp(at), 60.0, value] for at, value in points
                if float(request.query['start']) // 60 * 60 <= at < float(request.query['stop'])]}
                for name, points in self.series[key].items() if name in names}
            if series:
                measures[key] = series
        if not measures:
            return Answer({'code': 404, 'title': 'Not Found',
                           'description': f'Metric {names} does not exist'}, 404)
        return {'measures': measures}


class TestGnocchiReader(unittest.TestCase):

    def setUp(self):
        super().setUp()
        self.gnocchi = Gnocchi()
        self.server = http_server.Server(self.gnocchi)
        self.addCleanup(self.server.stop)
        self.clock = http_server.Clock()

    def reader(self, patience=PATIENT, **settings):
        service = rest.Service(rest.plain(self.server.url), 'Gnocchi', patience, lambda s: None)
        return gnocchi.GnocchiReader(service, gnocchi.Settings(**settings), self.clock)

    def read(self, reader=None, since=START, until=START + 300, names=(CLOCK, GUEST)):
        return (reader or self.reader()).read(since, until, names)

    def asked(self, path='/v1/aggregates'):
        return [request for request in self.server.requests if request.path.startswith(path)]

    def test_samples_of_all_resources(self):
        first = self.gnocchi.add(1)
        second = self.gnocchi.add(2, series={GUEST: [(START + 120, 7.0)]})
        self.gnocchi.add(3, series={'memory': [(START, 1.0)]})
        reader = self.reader()
        found = self.read(reader)
        self.assertEqual((first, second), found.resources)
        self.assertEqual((CLOCK, GUEST), found.meters)
        np.testing.assert_array_equal([0, 0, 1], found.row)
        np.testing.assert_array_equal([START, START + 60, START + 120], found.at)
        np.testing.assert_array_equal([[1e15, 5e9], [1e15 + 6e10, 8e9], [np.nan, 7.0]],
                                      found.values)
        self.assertEqual((3, 1, 0, 0, None), (
            reader.last.resources, reader.last.pages, reader.last.failed, reader.last.unread,
            reader.last.first))
        self.assertEqual(60.0, reader.resolution)

    def test_since_is_in_and_until_is_out(self):
        self.gnocchi.add(1, series={CLOCK: [(START + 60 * n, float(n)) for n in range(5)]})
        found = self.read(since=START + 60, until=START + 180)
        np.testing.assert_array_equal([START + 60, START + 120], found.at)
        # Gnocchi rounds down to the bucket; one that began before is not asked for.
        found = self.read(since=START + 61, until=START + 181)
        np.testing.assert_array_equal([START + 120, START + 180], found.at)

    def test_hosts_by_their_names(self):
        self.gnocchi.add(1)
        host = self.gnocchi.add(2, 'nova_compute', 'compute-1', {BUSY: [(START, 3.0)]})
        found = self.read(names=(GUEST, BUSY, CLOCK))
        self.assertEqual({str(uuid.UUID(int=1)), host}, set(found.resources))
        values = dict(zip((found.resources[row] for row in found.row), found.values))
        np.testing.assert_array_equal([np.nan, 3.0, np.nan], values['compute-1'])
        np.testing.assert_array_equal([8e9, np.nan, 1e15 + 6e10], values[str(uuid.UUID(int=1))])
        only = self.read(names=(BUSY,))
        self.assertEqual(('compute-1',), only.resources)

    def test_an_empty_cloud_is_no_error(self):
        reader = self.reader()
        found = self.read(reader)
        self.assertEqual(((), 0, (0, 2)), (found.resources, len(found.row), found.values.shape))
        self.assertIsNone(reader.last.first)
        self.assertEqual(
            f'Gnocchi at {self.server.url}/v1/aggregates was asked for tracon.clock and others of '
            'resources of type instance (none is listed), granularity 60 s, aggregation last',
            found.asked)

    def test_a_page_without_any_of_the_meters_is_no_error(self):
        for number in range(1, 6):
            self.gnocchi.add(number, series={'memory': [(START, 1.0)]} if number < 4 else None)
        reader = self.reader(page=3)
        self.assertEqual(2, len(self.read(reader).resources))
        self.assertEqual((2, 0, None), (reader.last.pages, reader.last.failed, reader.last.first))
        # However long the list of meters is that the error quotes.
        names = [f'tracon.{"x" * 80}.{number}' for number in range(9)]
        self.assertEqual((), self.read(reader, names=names).resources)
        self.assertIsNone(reader.last.first)

    def test_pages_are_bounded_and_each_resource_is_in_one(self):
        for number in range(1, 26):
            self.gnocchi.add(number)
        found = self.read(self.reader(page=10, listing_page=7))
        self.assertEqual(25, len(found.resources))
        asked = [request.body['search']['in']['id'] for request in self.asked()]
        self.assertEqual([5, 10, 10], sorted(map(len, asked)))
        self.assertEqual(25, len({key for page in asked for key in page}))
        self.assertEqual(25 // 7 + 2, len(self.asked('/v1/search')))
        # A page of a listing may be smaller than asked for.
        self.gnocchi.limit = 4
        self.assertEqual(25, len(self.read(self.reader(listing_page=500)).resources))

    def test_only_what_changed_is_listed_again(self):
        self.gnocchi.add(1)
        self.gnocchi.add(2)
        reader = self.reader(relist_seconds=100.0)
        self.read(reader)
        new = self.gnocchi.add(3, at=START + 500)
        self.gnocchi.resources[str(uuid.UUID(int=1))].update(
            ended_at=stamp(START + 400), revision_start=stamp(START + 400))
        self.clock.now += 99.0
        self.assertEqual({new, str(uuid.UUID(int=2))}, set(self.read(reader).resources))
        request = self.asked('/v1/search')[2]
        self.assertEqual({'>=': {'revision_start': stamp(START - 120)}}, request.body)
        # Gnocchi shows nothing of what was deleted; in time everything is listed.
        del self.gnocchi.resources[str(uuid.UUID(int=2))]
        self.gnocchi.resources[new]['ended_at'] = stamp(START)
        self.clock.now += 1.0
        self.assertEqual((), self.read(reader).resources)
        self.assertEqual({}, reader.lists[meters.VM].names)

    def test_ended_resources_are_not_listed(self):
        key = self.gnocchi.add(1)
        self.gnocchi.resources[key]['ended_at'] = stamp(START)
        self.assertEqual((), self.read().resources)
        self.assertEqual([], self.asked())

    def test_listing_fails_but_those_that_are_known_are_read(self):
        self.gnocchi.add(1)
        reader = self.reader()
        self.read(reader)
        self.gnocchi.spoil = lambda request: Answer(
            b'', 500) if '/search/' in request.path else None
        with self.assertLogs(gnocchi.LOG, 'WARNING') as logs:
            found = self.read(reader)
        self.assertEqual(1, len(found.resources))
        self.assertEqual(1, len(logs.output))
        self.assertIn('/v1/search/resource/instance: 500 came', logs.output[0])
        self.assertIsNotNone(reader.last.first)

    def test_nothing_can_be_read(self):
        self.gnocchi.add(1)
        for spoil, said in (
                (lambda request: Answer(b'', 500), '500 came'),
                (lambda request: Answer(b'', 401), '401 came'),
                (lambda request: Answer([], delay=3600), 'timed out'),
                (lambda request: Answer(b''), 'empty body'),
                (lambda request: Answer(b'<html></html>'), 'HTML'),
                (lambda request: Answer(reset=True), 'Connection aborted|no connection'),
                (lambda request: {'versions': []}, "came {'versions'"),
                (lambda request: Answer(b'', 302, {'Location': 'http://elsewhere/'}), 'sent on')):
            self.gnocchi.spoil = spoil
            reader = self.reader(IMPATIENT if said == 'timed out' else PATIENT)
            with self.assertRaisesRegex(samples.TelemetryUnavailable, said) as caught:
                self.read(reader)
            self.assertIn(self.server.url, str(caught.exception))

    def test_measures_of_another_schema(self):
        key = self.gnocchi.add(1)
        good = [stamp(START), 60.0, 5.0]
        for answer in ([], None, 7, 'x', {}, {'measures': None}, {'measures': [1]},
                       {'measures': {'unknown': {CLOCK: {'last': [good]}}}},
                       {'measures': {key: {CLOCK: {'mean': [good]}}}},
                       {'measures': {key: {'other': {'last': [good]}}}},
                       {'measures': {key: {CLOCK: {'last': [good[:2]]}}}},
                       {'measures': {key: {CLOCK: {'last': [['today', 60.0, 1.0]]}}}},
                       {'measures': {key: {CLOCK: {'last': [[5, 60.0, 1.0]]}}}},
                       {'measures': {key: {CLOCK: {'last': [[stamp(START), 60.0, 'x']]}}}},
                       {'measures': {key: {CLOCK: {'last': [[stamp(START), 60.0, [1]]]}}}},
                       {'measures': {key: [CLOCK]}}):
            self.gnocchi.spoil = lambda request, answer=answer: None if (
                '/search/' in request.path) else Answer(answer)
            with self.assertRaisesRegex(rest.Unanswered,
                                        'v1/aggregates: came .*: install a release') as caught:
                self.read()
            self.assertLess(len(str(caught.exception)), 700)

    def test_listings_of_another_schema(self):
        good = {'id': str(uuid.UUID(int=1)), 'original_resource_id': 'x', 'ended_at': None,
                'revision_start': stamp(START)}
        for answer in ({}, 'x', 7, [7], [[]], [{}], [None],
                       *([{**good, field: 5}] for field in good),
                       *([{name: value for name, value in good.items() if name != field}]
                         for field in good),
                       [{**good, 'revision_start': 'today'}], [good, good]):
            self.gnocchi.spoil = lambda request, answer=answer: Answer(answer)
            with self.assertRaisesRegex(rest.Unanswered, 'search/resource/instance: came '):
                self.read()

    def test_a_listing_without_end_ends(self):
        self.gnocchi.spoil = lambda request: [{
            'id': str(uuid.UUID(int=1)), 'original_resource_id': 'x', 'ended_at': None,
            'revision_start': stamp(START)}]
        with self.assertRaises(rest.Unanswered):
            self.read()
        self.assertEqual(2, len(self.server.requests))

    def test_values_that_are_none(self):
        key = self.gnocchi.add(1)
        body = ('{"measures": {"%s": {"%s": {"last": [["%s", 60.0, NaN], ["%s", 60.0, null], '
                '["%s", 60.0, -Infinity], ["%s", 60.0, 4]]}}}}' % (
                    key, CLOCK, *(stamp(START + 60 * n) for n in range(4)))).encode()
        self.gnocchi.spoil = lambda request: None if '/search/' in request.path else Answer(body)
        found = self.read()
        np.testing.assert_array_equal([START + 120, START + 180], found.at)
        np.testing.assert_array_equal([-np.inf, 4.0], found.values[:, 0])

    def test_one_page_that_fails_costs_its_resources_alone(self):
        for number in range(1, 31):
            self.gnocchi.add(number)
        bad = str(uuid.UUID(int=17))
        for answer in (Answer(b'', 500), Answer(b'', 503), Answer(b''),
                       Answer(b'<html>'), Answer({'measures': 5}), Answer({}, 400)):
            self.gnocchi.spoil = lambda request, answer=answer: answer if (
                '/aggregates' in request.path and bad in request.body['search']['in']['id']) \
                else None
            reader = self.reader(page=5, requests_at_once=1)
            with self.assertLogs(gnocchi.LOG, 'WARNING') as logs:
                found = self.read(reader)
            self.assertEqual(25, len(found.resources))
            self.assertEqual((30, 6, 1, 5), (reader.last.resources, reader.last.pages,
                                             reader.last.failed, reader.last.unread))
            self.assertEqual(1, len(logs.output))
            self.assertIn('5 of 30 resources could not be read, in 1 of 6 pages', logs.output[0])

    def test_a_page_that_takes_too_long_costs_its_resources_alone(self):
        for number in range(1, 11):
            self.gnocchi.add(number)
        slow = str(uuid.UUID(int=7))
        clock = http_server.Hurrying()

        def spoil(request):
            if '/aggregates' in request.path and slow in request.body['search']['in']['id']:
                clock.now += 2 * PATIENT.seconds

        self.gnocchi.spoil = spoil
        with mock.patch.object(rest, 'time', clock), \
                self.assertLogs(gnocchi.LOG, 'WARNING') as logs:
            found = self.read(self.reader(page=2, requests_at_once=1))
        self.assertEqual(8, len(found.resources))
        self.assertIn('only a part came in', logs.output[0])

    def test_a_resource_that_spoils_its_page_is_found_and_left_out(self):
        for number in range(1, 101):
            self.gnocchi.add(number)
        bad = str(uuid.UUID(int=42))
        self.gnocchi.spoil = lambda request: Answer(
            {'description': {'cause': 'Metrics with unknown aggregation'}}, 404) if (
                '/aggregates' in request.path and bad in request.body['search']['in']['id']) \
            else None
        reader = self.reader(page=20, relist_seconds=1000.0)
        read = []
        for _round in range(6):
            read.append(len(self.read(reader).resources))
            self.clock.now += 60.0
        self.assertEqual([80, 95, 99, 99, 99, 99], read)
        self.assertEqual((5, 0, 1), (reader.last.pages, reader.last.failed, reader.last.unread))
        self.assertIsNone(reader.last.first)
        # With the next full listing it gets another chance.
        self.gnocchi.spoil = lambda request: None
        self.clock.now += 1000.0
        self.assertEqual(100, len(self.read(reader).resources))

    def test_when_gnocchi_has_gone_not_every_page_is_waited_for(self):
        for number in range(1, 41):
            self.gnocchi.add(number)
        reader = self.reader(page=1, requests_at_once=1)
        answered = []

        def spoil(request):
            if '/aggregates' in request.path:
                answered.append(request)
                return Answer(reset=True) if len(answered) > 4 else None
            return None
        self.gnocchi.spoil = spoil
        with self.assertLogs(gnocchi.LOG, 'WARNING') as logs:
            found = self.read(reader)
        self.assertEqual(4, len(found.resources))
        self.assertEqual(4 + 3 * 2, len(answered))
        self.assertEqual((36, 36), (reader.last.failed, reader.last.unread))
        self.assertEqual(1, len(logs.output))
        # No resource is to blame for it: the next round asks for the same pages.
        self.gnocchi.spoil = lambda request: None
        self.assertEqual(40, len(self.read(reader).resources))

    def test_a_round_has_an_end(self):
        for number in range(1, 11):
            self.gnocchi.add(number)

        def spoil(request):
            self.clock.now += 10.0
        self.gnocchi.spoil = spoil
        reader = self.reader(page=1, requests_at_once=1, seconds=45.0)
        with self.assertLogs(gnocchi.LOG, 'WARNING') as logs:
            found = self.read(reader)
        self.assertEqual(3, len(found.resources))
        self.assertEqual((7, 7), (reader.last.unread, reader.last.failed))
        self.assertIn('pages are left after 45 s', logs.output[0])
        # Those that were left come first in the next one, so that none waits for ever.
        read = set(found.resources)
        with self.assertLogs(gnocchi.LOG, 'WARNING'):
            read |= set(self.read(reader).resources)
            self.assertEqual(6, len(read))
            read |= set(self.read(reader).resources)
            read |= set(self.read(reader).resources)
        self.assertEqual(10, len(read))

    def test_a_resource_type_that_is_missing_leaves_the_other(self):
        self.gnocchi.add(1)
        self.gnocchi.spoil = lambda request: Answer(
            {'description': 'Resource type nova_compute does not exist'}, 404) if (
                request.path.endswith('nova_compute')) else None
        with self.assertLogs(gnocchi.LOG, 'WARNING') as logs:
            found = self.read(names=(CLOCK, BUSY))
        self.assertEqual(1, len(found.resources))
        self.assertIn('Resource type nova_compute does not exist', logs.output[0])

    def test_other_settings(self):
        self.gnocchi.add(1)
        self.gnocchi.spoil = lambda request: None if '/search/' in request.path else {
            'measures': {str(uuid.UUID(int=1)): {CLOCK: {'mean': [[stamp(START), 10.0, 2]]}}}}
        reader = self.reader(granularity=10.0, aggregation='mean',
                             resource_types={meters.VM: 'server'})
        self.gnocchi.resources[str(uuid.UUID(int=1))]['type'] = 'server'
        found = self.read(reader, names=(CLOCK,))
        np.testing.assert_array_equal([[2.0]], found.values)
        request, = self.asked()
        self.assertEqual(('10', 'dropna', 'server', ['metric', [CLOCK, 'mean']]), (
            request.query['granularity'], request.query['fill'], request.body['resource_type'],
            request.body['operations']))
        self.assertEqual(10.0, reader.resolution)


class TestPages(unittest.TestCase):

    def test_an_ill_service_makes_no_resource_a_suspect(self):
        paged = rest.Pages(2)
        wanted = paged.split('abcdefgh')
        self.assertEqual([['a', 'b'], ['c', 'd'], ['e', 'f'], ['g', 'h']], wanted)
        paged.learn(wanted[:2], wanted[2:])
        self.assertEqual(wanted, paged.split('abcdefgh'))
        paged.learn(wanted[:3], wanted[3:])
        self.assertEqual([['a', 'b'], ['c', 'd'], ['e', 'f'], ['g'], ['h']],
                         paged.split('abcdefgh'))
        paged.learn([['g']], [['h']])
        paged.learn([['g']], [['h']])
        self.assertEqual((0, [['a', 'b'], ['g'], ['h']]), (paged.left_out, paged.split('abgh')))
        paged.learn([['g']], [['h']])
        self.assertEqual(1, paged.left_out)
        self.assertEqual([['a', 'b'], ['g']], paged.split('abgh'))
        paged.forgive()
        self.assertEqual([['a', 'b'], ['g', 'h']], paged.split('abgh'))

    def test_those_that_were_not_asked_for_come_first(self):
        paged = rest.Pages(2)
        wanted = paged.split('abcdef')
        paged.learn(wanted[:1], [], wanted[1:])
        self.assertEqual([['c', 'd'], ['e', 'f'], ['a', 'b']], paged.split('abcdef'))
        paged.learn(paged.split('abcdef'), [])
        self.assertEqual(wanted, paged.split('abcdef'))

    def test_one_page_alone_that_is_always_refused_is_split_once(self):
        paged = rest.Pages(100)
        resources = [str(number) for number in range(100)]
        for _round in range(5):
            paged.learn([], paged.split(resources))
        self.assertEqual(4, len(paged.split(resources)))


class TestResourceList(unittest.TestCase):

    def test_a_listing_that_breaks_off_changes_nothing(self):
        answers = [[{'id': 'a', 'original_resource_id': 'a', 'ended_at': None,
                     'revision_start': stamp(START)}], [], Answer(b'', 400)]
        with http_server.serving(lambda request: answers.pop(0)) as server:
            service = rest.Service(rest.plain(server.url), 'Gnocchi', PATIENT)
            listed = gnocchi.ResourceList(service, 'instance', 1, 10.0)
            self.assertTrue(listed.refresh(0.0))
            answers[:] = [[{'id': 'b', 'original_resource_id': 'b', 'ended_at': None,
                            'revision_start': stamp(START)}], Answer(b'', 400)]
            with self.assertRaises(rest.Unanswered):
                listed.refresh(10.0)
            self.assertEqual({'a': 'a'}, listed.names)
            # It is still due.
            answers[:] = [[], []]
            self.assertTrue(listed.refresh(10.1))
            self.assertEqual({}, listed.names)
            self.assertEqual([{'=': {'ended_at': None}},
                              {'>=': {'revision_start': stamp(START - 120)}}],
                             [request.body for request in server.requests[-2:]])

    def test_a_full_listing_is_spread_over_rounds(self):
        cloud = Gnocchi()
        for number in range(1, 26):
            cloud.add(number)
        with http_server.serving(cloud) as server:
            service = rest.Service(rest.plain(server.url), 'Gnocchi', PATIENT)
            listed = gnocchi.ResourceList(service, 'instance', 1, 100.0)
            # Without the first one nothing could be read.
            self.assertTrue(listed.refresh(0.0))
            self.assertEqual(25, len(listed.names))
            for number in (3, 24):
                del cloud.resources[str(uuid.UUID(int=number))]
            for resource in cloud.resources.values():
                resource['revision_start'] = stamp(START - 1000)
            known = []
            for now in (99.0, 100.0, 101.0, 102.0, 103.0):
                if now == 101.0:
                    # One that has been passed already, and one of those that come.
                    cloud.resources[str(uuid.UUID(int=2))].update(
                        ended_at=stamp(START + 5), revision_start=stamp(START + 5))
                    cloud.add(1000, at=START + 6)
                before = len(server.requests)
                known.append((listed.refresh(now), len(listed.names)))
                self.assertLessEqual(len(server.requests) - before, 10 + 3)
            self.assertEqual([(False, 25), (False, 25), (False, 25), (True, 23), (False, 23)],
                             known)
            self.assertEqual(
                {key for key, resource in cloud.resources.items() if not resource['ended_at']},
                set(listed.names))
