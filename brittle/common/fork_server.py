"""The fork server of worker processes imports this first: it ends with the run, and so does what it forks."""

import os

from brittle.common.orphans import end_with_parent

end_with_parent()
os.register_at_fork(after_in_child=end_with_parent)
