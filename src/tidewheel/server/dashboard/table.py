"""The table of pages, and of the deeds that their forms do."""

from typing import Final

from tidewheel.model.access import Action
from tidewheel.server.dashboard.pages import (
    admin,
    alerts,
    dead_letters,
    files,
    fleet,
    flow,
    job,
    jobs,
    logs,
    notifications,
    overview,
    schedules,
)
from tidewheel.server.dashboard.visit import Deed, Page, Piped

SLOWLY: Final = 3.0
"""Seconds between looks at a page that takes many."""

PAGES: Final = (
    Page("/ui", "Overview", "overview.html", overview.load, Action.JOBS_READ, menu="Overview"),
    Page("/ui/jobs", "Jobs", "jobs.html", jobs.load, Action.JOBS_READ, menu="Jobs"),
    Page("/ui/jobs/bulk", "Jobs", "bulk.html", jobs.weigh, Action.JOBS_CANCEL, every=None),
    Page("/ui/jobs/{id}", "Job", "job.html", job.load, Action.JOBS_READ),
    Page(
        "/ui/jobs/{id}/related/{side}", "Related jobs", "relatives.html", job.load_relatives, Action.JOBS_READ, SLOWLY
    ),
    Page("/ui/schedules", "Schedules", "schedules.html", schedules.load, Action.SCHEDULES_READ, SLOWLY, "Schedules"),
    Page("/ui/schedules/{id}", "Schedule", "schedule.html", schedules.load_one, Action.SCHEDULES_READ),
    Page(
        "/ui/dead-letters",
        "Dead letters",
        "dead_letters.html",
        dead_letters.load,
        Action.JOBS_READ,
        SLOWLY,
        "Dead letters",
    ),
    Page("/ui/dead-letters/redrive", "Redrive", "redrive.html", dead_letters.weigh, Action.JOBS_RETRY, None),
    Page("/ui/logs", "Logs", "logs.html", logs.load, Action.JOBS_READ, SLOWLY, "Logs"),
    Page("/ui/gates", "Gates", "gates.html", flow.load_gates, Action.GATES_READ, menu="Gates"),
    Page("/ui/limits", "Limits", "limits.html", flow.load_limits, Action.LIMITS_READ, menu="Limits"),
    Page("/ui/queues", "Queues", "queues.html", fleet.load_queues, Action.JOBS_READ, menu="Queues"),
    Page("/ui/workers", "Workers", "workers.html", fleet.load_workers, Action.WORKERS_READ, menu="Workers"),
    Page("/ui/artifacts", "Artifacts", "artifacts.html", files.load, Action.ARTIFACTS_READ, SLOWLY, "Artifacts"),
    Page("/ui/alerts", "Alerts", "alerts.html", alerts.load, Action.ALERTS_READ, menu="Alerts"),
    Page(
        "/ui/notifications",
        "Notifications",
        "notifications.html",
        notifications.load,
        Action.NOTIFICATIONS_READ,
        SLOWLY,
        "Notifications",
    ),
    Page("/ui/secrets", "Secrets", "secrets.html", admin.load_secrets, Action.SECRETS_READ, SLOWLY, "Secrets"),
    Page("/ui/keys", "Keys", "keys.html", admin.load_keys, Action.KEYS_READ, SLOWLY, "Keys"),
    Page("/ui/audit", "Audit log", "audit.html", admin.load_audit, Action.AUDIT_READ, menu="Audit"),
)

DEEDS: Final = (
    Deed("/ui/jobs/bulk", jobs.act_on_matching),
    Deed("/ui/jobs/selected", jobs.act_on_selected),
    Deed("/ui/jobs/{id}/cancel", job.cancel),
    Deed("/ui/jobs/{id}/retry", job.retry),
    Deed("/ui/schedules/{id}/pause", schedules.pause),
    Deed("/ui/schedules/{id}/resume", schedules.resume),
    Deed("/ui/schedules/{id}/trigger", schedules.trigger),
    Deed("/ui/dead-letters/redrive", dead_letters.redrive),
    Deed("/ui/gates", flow.close_gate),
    Deed("/ui/gates/{id}/open", flow.open_gate),
    Deed("/ui/limits", flow.set_limit),
    Deed("/ui/limits/remove", flow.remove_limit),
    Deed("/ui/alerts/{id}/acknowledge", alerts.acknowledge),
    Deed("/ui/maintenance", alerts.add_window),
    Deed("/ui/maintenance/{id}/remove", alerts.remove_window),
    Deed("/ui/channels", notifications.add_channel),
    Deed("/ui/channels/{id}/remove", notifications.remove_channel),
    Deed("/ui/channels/{id}/enable", notifications.enable_channel),
    Deed("/ui/channels/{id}/test", notifications.send_test),
    Deed("/ui/subscriptions", notifications.subscribe),
    Deed("/ui/subscriptions/{id}/remove", notifications.unsubscribe),
    Deed("/ui/deliveries/{id}/resend", notifications.resend),
    Deed("/ui/keys", admin.create_key),
    Deed("/ui/keys/{id}/revoke", admin.revoke_key),
)

PIPES: Final = (
    Piped("/ui/series", overview.series),
    Piped("/ui/jobs/{id}/events", job.follow),
    Piped("/ui/jobs/{id}/result", job.result),
    Piped("/ui/jobs/{id}/outputs/{token}/{name:path}", files.output),
    Piped("/ui/artifacts/{digest}/content", files.artifact),
)
