"""Long work: begun as a process of its own or shared by several, watched by its state file, cancelled."""

from core.jobs.job import Job, begin, jobs, new_folder
from core.jobs.process import Stopped, Watch, asked_to_stop, cores, spread, stop
from core.jobs.status import State, Status, Tracker, read_status

__all__ = [
    "Job",
    "State",
    "Status",
    "Stopped",
    "Tracker",
    "Watch",
    "asked_to_stop",
    "begin",
    "cores",
    "jobs",
    "new_folder",
    "read_status",
    "spread",
    "stop",
]
