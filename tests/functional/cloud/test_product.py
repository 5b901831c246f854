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

"""The product in a whole OpenStack: who sees what, audits of each kind, and services that die."""

import csv
import datetime
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import requests

from tests.functional.cloud import base
from tests.functional import ports
from tracon_lab.testbed import programs
from tracon_lab.testcloud import product
from tracon_lab.testcloud import service
from tracon_lab.testcloud import settings
from tracon_watcher.placement import limits

ETC = pathlib.Path(__file__).parents[3] / 'etc'
PROMETHEUS = '''global: {{scrape_interval: 2s, scrape_timeout: 2s, evaluation_interval: 2s}}
rule_files: [{rules}]
scrape_configs:
- job_name: tracon
  static_configs: [{{targets: ['{target}']}}]
'''
UNITS = {'one': programs.Unit(cpu_seconds=0.001, reads=3, period=20_000),
         'two': programs.Unit(cpu_seconds=0.002, reads=1, period=20_000)}


class TestProduct(base.ProductCase):

    port_base = 29500
    patience = 180.0

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        for name, unit in UNITS.items():
            cls.begin(name, unit)

    def run_openstack(self, *arguments, user='admin', project='admin'):
        return subprocess.run(
            [pathlib.Path(sys.prefix) / 'bin/openstack', *arguments], capture_output=True,
            text=True, check=False, env={
                **os.environ, **self.cloud.environment(user, project), 'PYTHONWARNINGS': 'ignore'})

    def openstack(self, *arguments, **who):
        found = self.run_openstack(*arguments, '-f', 'json', **who)
        self.assertEqual(0, found.returncode, found.stderr)
        return json.loads(found.stdout)

    def known(self):
        """What the administrator sees, once it is known of all."""
        rows = {row['Name']: row for row in self.openstack('interference', 'vm', 'list')}
        return rows if all(rows.get(name, {}).get('Slowdown') for name in UNITS) else None

    def plans(self, audit):
        return self.openstack('optimize', 'actionplan', 'list', '--audit', audit)

    def audit(self, *arguments):
        made = self.openstack('optimize', 'audit', 'create', '-g', 'interference', '-s',
                              'tracon_interference', *arguments)['UUID']
        self.addCleanup(self.run_openstack, 'optimize', 'audit', 'delete', made)
        return made

    def test_all_users_see_what_is_theirs(self):
        rows = self.wait('the slowdown of both', self.known)
        self.assertEqual({self.cloud.settings.hosts[0]}, {row['Host'] for row in rows.values()})
        for row in rows.values():
            self.assertGreaterEqual(row['Slowdown'], 1.0)
        shown = self.openstack('interference', 'vm', 'show', self.servers['one'].id)
        self.assertEqual('one', shown['Name'])
        # Nova's own answer is that there is no such server, too.
        who = {'user': 'demo', 'project': 'demo'}
        self.assertEqual([], self.openstack('interference', 'vm', 'list', **who))
        refused = self.run_openstack('interference', 'vm', 'show', self.servers['one'].id, **who)
        self.assertNotEqual(0, refused.returncode)
        self.assertIn('404', refused.stderr)
        refused = self.run_openstack('interference', 'host', 'list', **who)
        self.assertNotEqual(0, refused.returncode)
        self.assertIn('403', refused.stderr)

    def test_cpu_use_of_the_last_day_is_exported(self):
        session = self.cloud.connection().session
        now, vm = time.time() // 300 * 300, self.servers['one'].id
        session.post('/v1/batch/resources/metrics/measures?create_metrics=true',
                     endpoint_filter={'service_type': 'metric'}, json={vm: {'yesterday.cpu': {
                         'archive_policy_name': 'low', 'measures': [
                             {'timestamp': now + at, 'value': 0.25e9 * (86400 + at)}
                             for at in range(-86400, 1, 300)]}}})
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = pathlib.Path(folder.name, 'vms.csv')

        def export(meter):
            return subprocess.run([
                service.program('tracon'), 'export', path, '--meter', meter, '--config-file',
                self.settings.configuration / 'tracon/tracon.conf'],
                capture_output=True, text=True, check=False,
                env={**os.environ, **self.cloud.environment()})

        self.wait('samples in Gnocchi', lambda: export('yesterday.cpu').returncode == 0)
        with open(path, encoding='utf-8') as stream:
            [line] = csv.DictReader(stream)
        self.assertEqual([vm, '25'], [line['vm'], line['m600']])
        refused = export('no.cpu')
        self.assertEqual(2, refused.returncode, refused.stdout)
        self.assertIn('it has no samples of VMs that Nova lists; ', refused.stderr)

    def test_a_continuous_audit_goes_on(self):
        self.wait('the slowdown of both', self.known)
        audit = self.audit('-t', 'CONTINUOUS', '-i', '5')
        self.wait('two audits', lambda: len(self.plans(audit)) >= 2)
        self.assertEqual('ONGOING', self.openstack('optimize', 'audit', 'show', audit)['State'])
        ended = self.run_openstack('optimize', 'audit', 'update', audit, 'replace',
                                   'state=CANCELLED')
        self.assertEqual(0, ended.returncode, ended.stderr)

    def test_an_audit_waits_for_its_event(self):
        self.wait('the slowdown of both', self.known)
        audit = self.audit('-t', 'EVENT')
        time.sleep(3.0)
        self.assertEqual([], self.plans(audit))
        self.trigger(audit)
        self.wait('the audit', lambda: self.plans(audit))

    def trigger(self, audit):
        """Trigger an audit as an alarm of Aodh's does."""
        session = self.cloud.connection().session
        answer = requests.post(
            session.get_endpoint(service_type='infra-optim', interface='public').rstrip('/')
            + f'/v1/webhooks/{audit}', json={'reason': 'an alarm'}, timeout=30, headers={
                'X-Auth-Token': session.get_token(),
                'OpenStack-API-Version': 'infra-optim 1.4'})
        self.assertEqual(202, answer.status_code, answer.text)

    def test_a_request_that_found_no_host_finds_one_after_background_work_has_left(self):
        compute = self.cloud.connection().compute
        first, second = self.cloud.settings.hosts
        service, = (one for one in compute.services() if one.host == second
                    and one.binary == 'nova-compute')
        compute.disable_service(service)
        self.addCleanup(compute.enable_service, service)
        usual = compute.find_flavor('tracon.small')
        memory = compute.get('/os-hypervisors/detail', microversion='2.87').json()[
            'hypervisors'][0]['memory_mb']
        # Each host may give half of the memory: one of them has room there, and two have not.
        for name in ('background', 'foreground'):
            made = compute.create_flavor(name=name, ram=int(0.3 * memory), vcpus=1,
                                         disk=usual.disk)
            self.addCleanup(compute.delete_flavor, made)
            if name == limits.BACKGROUND_CLASS:
                compute.create_flavor_extra_specs(made, {limits.CLASS: name})
        file = product.configuration_file(self.cloud.settings)
        before = file.read_text()
        self.addCleanup(self.cloud.restart, product.ENGINE)
        self.addCleanup(file.write_text, before)
        file.write_text(before.replace('[engine]\n', '[engine]\nrequest_audit = room\n'))
        self.cloud.restart(product.ENGINE)
        audit = self.audit('--name', 'room', '-t', 'EVENT', '--auto-trigger',
                           '-p', 'background_action=delete')
        for engine_dies in (False, True):
            batch = self.cloud.boot('batch', first, flavor='background')
            self.wait('the slowdown of all', lambda: {*UNITS, 'batch'} <= {
                row['Name'] for row in self.openstack('interference', 'vm', 'list')
                if row['Slowdown']})
            failed = self.cloud.servers.create('web', None, 'foreground')
            self.wait('no host', lambda failed=failed: compute.get(
                f'/servers/{failed}').json()['server']['status'] == 'ERROR')
            began = time.monotonic()
            if engine_dies:
                self.cloud.kill(product.ENGINE)
                time.sleep(5.0)
                self.cloud.restart(product.ENGINE)
                self.assertEqual(200, compute.get(f'/servers/{batch.id}').status_code)
                # Nova's own list has the request still.
                self.trigger(audit)
            self.wait('batch leaving', lambda batch=batch: compute.get(
                f'/servers/{batch.id}').status_code == 404)
            print(f'room {time.monotonic() - began:.1f} s after the request'
                  + (', with an engine that died' if engine_dies else ''))
            web = self.cloud.boot('web', flavor='foreground')
            self.assertEqual(first, web.host)
            self.cloud.servers.delete(web)
            compute.delete(f'/servers/{failed}')

    def test_audit_templates(self):
        compute = self.cloud.connection().compute
        aggregate = compute.create_aggregate(name='fast disks')
        self.addCleanup(compute.delete_aggregate, aggregate)
        compute.add_host_to_aggregate(aggregate, self.cloud.settings.hosts[0])
        self.addCleanup(compute.remove_host_from_aggregate, aggregate,
                        self.cloud.settings.hosts[0])
        command = [ETC / 'watcher/audit_templates.sh', 'fast disks']
        for state in ('made', 'exists'):
            done = subprocess.run(command, capture_output=True, text=True, check=True, env={
                **os.environ, **self.cloud.environment(), 'PYTHONWARNINGS': 'ignore',
                'PATH': f'{sys.prefix}/bin:{os.environ["PATH"]}'})
            self.assertEqual(f'interference {state}\ninterference-fast disks {state}\n',
                             done.stdout)
        self.wait('the slowdown of both', self.known)
        made = self.openstack('optimize', 'audit', 'create', '-a', 'interference-fast disks')
        self.addCleanup(self.run_openstack, 'optimize', 'audit', 'delete', made['UUID'])
        self.wait('its action plan', lambda: self.plans(made['UUID']))

    def test_the_dashboard_shows_what_prometheus_scrapes(self):
        self.wait('the slowdown of both', self.known)
        port = ports.free()
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        (folder / 'prometheus.yml').write_text(PROMETHEUS.format(
            rules=ETC / 'prometheus/tracon_alerts.yaml',
            target=f'{settings.ADDRESS}:{self.cloud.settings.port("metrics")}'))
        with open(folder / 'log', 'wb') as log:
            process = subprocess.Popen(
                ['prometheus', f'--config.file={folder / "prometheus.yml"}',
                 f'--storage.tsdb.path={folder / "data"}',
                 f'--web.listen-address=127.0.0.1:{port}'], stdout=log, stderr=log)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)

        def ask(what, **query):
            try:
                return requests.get(f'http://127.0.0.1:{port}/api/v1/{what}', query,
                                    timeout=5).json()
            except requests.ConnectionError:
                return {}

        def found(expression):
            return ask('query', query=expression).get('data', {}).get('result')
        # A rate needs two scrapes.
        self.wait('two scrapes', lambda: found('count_over_time(tracon_vms[1m]) > 2'))
        empty = set()
        for panel in json.loads((ETC / 'grafana/tracon.json').read_text())['panels']:
            for target in panel.get('targets', ()):
                expression = target['expr'].replace('$job', '.*').replace(
                    '$__rate_interval', '1m')
                answer = ask('query', query=expression)
                self.assertEqual('success', answer['status'], answer)
                if not answer['data']['result']:
                    empty.add(panel['title'])
        # Nothing was suspended or lost, and of a cloud that is some minutes old nothing is learnt.
        self.assertLessEqual(empty, {
            'Kinds that are suspended, for how long still', 'Error of slowdowns',
            'Trust in predictions, by host type', 'Intervals of VMs: learnt from, and lost'})
        (group,) = ask('rules')['data']['groups']
        self.assertEqual({'ok'}, {rule['health'] for rule in group['rules']})

    def test_what_dies_comes_back(self):
        self.wait('the slowdown of both', self.known)
        self.cloud.kill(product.ENGINE)
        self.cloud.kill('rabbitmq')
        # An engine that starts without a broker waits for it.
        self.cloud.restart(product.ENGINE)
        self.cloud.restart('rabbitmq')
        restarted = datetime.datetime.now(datetime.UTC).replace(tzinfo=None)

        def ready():
            try:
                return requests.get(
                    f'http://{settings.ADDRESS}:{self.cloud.settings.port("interference")}'
                    '/healthz/ready', timeout=5).status_code == 200
            except requests.ConnectionError:
                return False
        self.wait('the engine', ready)
        self.wait('the slowdown of both', self.known)
        # Nova takes a host that was silent while the broker was gone for one that is down.
        self.wait("Nova's services", lambda: self.all_have_reported(restarted))
        third = self.cloud.boot('third')
        self.addCleanup(self.cloud.servers.delete, third)
        # nova-scheduler has found the engine again, and told it what it decided.
        found = self.wait('the decision', lambda: self.explained(third.id))
        self.assertEqual(set(self.cloud.settings.hosts), {row['Host'] for row in found})

    def all_have_reported(self, since):
        services = self.cloud.connection().compute.get('/os-services').json()['services']
        return all(one['state'] == 'up' and one['updated_at']
                   and datetime.datetime.fromisoformat(one['updated_at']) > since
                   for one in services)

    def explained(self, server):
        found = self.run_openstack('interference', 'explain', server, '-f', 'json')
        return json.loads(found.stdout) if found.returncode == 0 else None
