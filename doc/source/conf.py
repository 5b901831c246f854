#  Licensed under the Apache License, Version 2.0 (the "License"); you may
#  not use this file except in compliance with the License. You may obtain
#  a copy of the License at
#
#       http://www.apache.org/licenses/LICENSE-2.0
#
#  Unless required by applicable law or agreed to in writing, software
#  distributed under the License is distributed on an "AS IS" BASIS, WITHOUT
#  WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied. See the
#  License for the specific language governing permissions and limitations
#  under the License.

import os
import sys

sys.path.insert(0, os.path.abspath('../..'))

extensions = [
    'cliff.sphinxext',
    'openstackdocstheme',
    'oslo_config.sphinxext',
]

project = 'tracon-watcher'
copyright = 'tracon-watcher developers'
master_doc = 'index'
exclude_patterns = ['_build']

openstackdocs_auto_name = False
openstackdocs_auto_version = False
openstackdocs_bug_project = 'tracon-watcher'

html_theme = 'openstackdocs'
pygments_style = 'native'
html_static_path = ['_static']
html_css_files = ['wrap.css']
