"""The dashboard as a whole: finds the page or deed of a request, lets the visitor in, and answers in HTML."""

import logging
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final
from urllib.parse import unquote

from starlette.routing import compile_path

from tidewheel.errors import TideError, Unauthenticated
from tidewheel.model.job import DEFAULT_TENANT
from tidewheel.model.problem import CODES
from tidewheel.model.session import SessionToken, begin_session
from tidewheel.server.access import Door
from tidewheel.server.dashboard import cookies
from tidewheel.server.dashboard.assets import PREFIX, load_assets
from tidewheel.server.dashboard.cookies import CookieMaker, check_form, flash_of, form_token
from tidewheel.server.dashboard.desk import Desk
from tidewheel.server.dashboard.live import live_answer
from tidewheel.server.dashboard.memory import Memory
from tidewheel.server.dashboard.pulse import Pulse
from tidewheel.server.dashboard.rendering import Renderer
from tidewheel.server.dashboard.request import Request
from tidewheel.server.dashboard.table import DEEDS, PAGES, PIPES
from tidewheel.server.dashboard.visit import Deed, Done, Form, Page, Piped, Visit
from tidewheel.server.endpoint import HTML, Answer
from tidewheel.server.entrance import Visitor, check_local
from tidewheel.server.guests import Ticket
from tidewheel.server.problems import Refused, refusal_of
from tidewheel.server.service import Service

HOME: Final = "/ui"
LOGIN: Final = "/ui/login"
LOGOUT: Final = "/ui/logout"
SWITCH: Final = "/ui/tenant"
SEE_OTHER: Final = 303
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
_SAFE: Final = (
    ("content-security-policy", POLICY),
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
)
_FOREVER: Final = ("cache-control", "public, max-age=31536000, immutable")
_OURS: Final = re.compile(r"/ui(?:/[\w.~%-]+)*(?:\?[\w.~%&=+:,/-]*)?", re.ASCII).fullmatch
_log = logging.getLogger(__name__)


class Dashboard:
    """Answers for all that lies under /ui."""

    def __init__(self, service: Service, door: Door, *, behind_tls: bool = False) -> None:
        self._behind_tls = behind_tls
        self._service = service
        self._door = door
        self._assets = load_assets()
        self._by_url = {asset.url: asset for asset in self._assets.values()}
        self._renderer = Renderer(self._assets)
        self._pulse = Pulse(service.clock)
        self._memory = Memory(service.clock)
        self._routes = {"GET": _routes([*PAGES, *PIPES]), "POST": _routes(DEEDS)}
        self._own_forms = {LOGOUT: self._logout, SWITCH: self._switch}

    @property
    def forms(self) -> tuple[str, ...]:
        """Where forms are sent to."""
        return (LOGIN, *self._own_forms, *(deed.path for _, deed in self._routes["POST"]))

    def serves(self, path: str) -> bool:
        """Tell whether a path is the dashboard's."""
        return path in ("/", HOME) or path.startswith(f"{HOME}/")

    async def answer(self, request: Request) -> Answer:
        """Answer a request, whatever happens."""
        if self._behind_tls:  # what the proxy says in its headers anyone could say
            request = replace(request, secure=True)
        if request.path == "/":
            return Answer(b"", SEE_OTHER, (*_SAFE, ("location", HOME)), HTML)
        if request.path.startswith(PREFIX):
            return self._asset(request)
        try:
            return await self._handle(request)
        except Unauthenticated:
            return self._login_page(request, 401)
        except TideError as error:
            if (refused := refusal_of(error)) is not None:
                return self._problem(request, refused)
            _log.exception("request %s: %s %s failed", request.id, request.method, request.path)
        except Exception:  # noqa: BLE001 - a visitor gets an answer, whatever happens
            _log.exception("request %s: %s %s failed", request.id, request.method, request.path)
        return self._problem(request, Refused("internal", CODES["internal"].advice))

    def _asset(self, request: Request) -> Answer:
        asset = self._by_url.get(request.path)
        if asset is None:
            return self._problem(request, Refused("not-found", "there is no such file"))
        fixed = (_FOREVER, ("vary", "accept-encoding"))
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Answer(asset.packed, headers=(*fixed, ("content-encoding", "gzip")), media_type=asset.media_type)
        return Answer(asset.content, headers=fixed, media_type=asset.media_type)

    # Who comes

    async def _handle(self, request: Request) -> Answer:
        method = "GET" if request.method == "HEAD" else request.method
        form = request.form() if method == "POST" else {}
        if request.path == LOGIN:
            return await self._login(request, form)
        desk = await self._admit(request)
        if method == "POST":
            token = form.pop("form_token", ("",))[0]
            check_form(request.headers, request.browser, token)
            if request.path in self._own_forms:
                return self._own_forms[request.path](request, desk, form)
        for pattern, target in self._routes.get(method, []):
            if found := pattern.match(request.path):
                return await self._run(request, self._visit(request, desk, found.groupdict(), form), target)
        raise Refused("not-found", f"there is no page {request.path[:200]}")

    async def _admit(self, request: Request) -> Desk:
        held, text = request.cookies, request.cookies.get(cookies.SESSION)
        ticket = Ticket(None if text is None else SessionToken(text), request.address)
        try:
            admitted = await self._door.admit(*ticket)
        except Unauthenticated:
            # Browsers do not tell ports of a machine apart: it may be a session of another server here.
            ticket = Ticket(None, request.address)
            admitted = await self._door.admit(*ticket)
        if ticket.key is None:
            check_local(_without_origin_of_links(request))
        if admitted.too_often:
            raise Refused("too-many", "too many requests with this key")
        actor = admitted.actor
        try:
            tenant = actor.scope(unquote(held[cookies.TENANT])) if cookies.TENANT in held else actor.tenant
        except (TideError, UnicodeError):
            tenant = actor.tenant  # a cookie of someone who was here before
        return Desk(self._service, Visitor(actor, tenant or DEFAULT_TENANT), ticket, self._door)

    async def _login(self, request: Request, form: dict[str, tuple[str, ...]]) -> Answer:
        if request.method != "POST":
            return self._login_page(request, 200)
        check_form(request.headers, request.browser, form.pop("form_token", ("",))[0])
        key = form.get("key", ("",))[0].strip()
        try:
            await self._door.admit(key, request.address)
        except Unauthenticated:
            return self._login_page(request, 401, "This key opens nothing here: it is mistyped, expired or revoked.")
        token = begin_session(key, self._service.clock.now(), secrets.token_urlsafe(24))
        made = CookieMaker(secure=request.secure).session(token.text)
        to = form.get("next", (HOME,))[0]
        return self._go(
            request, Done(to if _is_ours(to) else HOME, "", (made,)), forget=(cookies.VISIT, cookies.TENANT)
        )

    def _logout(self, request: Request, _: Desk, __: Form) -> Answer:
        return self._go(request, Done(LOGIN, "You are signed out."), forget=(cookies.SESSION, cookies.TENANT))

    def _switch(self, request: Request, desk: Desk, form: Form) -> Answer:
        tenant = desk.visitor.actor.scope(form.get("tenant", ("",))[0].strip()) or DEFAULT_TENANT
        made = CookieMaker(secure=request.secure).tenant(tenant)
        return self._go(request, Done(HOME, f"You look at tenant {tenant}.", (made,)))

    # Pages and deeds

    def _visit(
        self, request: Request, desk: Desk, path: Mapping[str, str], form: Mapping[str, tuple[str, ...]]
    ) -> Visit:
        now = self._service.clock.now()
        known = (self._pulse, self._memory)
        return Visit(desk, *known, now, request.url, path, request.query(), form, request.headers)

    async def _run(self, request: Request, visit: Visit, target: Page | Deed | Piped) -> Answer:
        if isinstance(target, Piped):
            return (await target.open(visit)).taken_by(visit.desk.ticket)
        if isinstance(target, Deed):
            outcome = await target.act(visit)
            if isinstance(outcome, Done):
                return self._go(request, outcome)
            return self._page(
                request, outcome.template, {**outcome.context, **self._around(request, visit, outcome.title)}
            )
        loaded = await self._context(request, visit, target)
        if isinstance(loaded, Done):
            return self._go(request, loaded)
        if target.every is not None and visit.follows:
            stream = live_answer(self._service, target.every, partial(self._live_part, request, visit, target))
            return stream.taken_by(visit.desk.ticket)
        return self._page(request, target.template, loaded)

    async def _context(self, request: Request, visit: Visit, page: Page) -> dict[str, Any] | Done:
        visit.desk.visitor.actor.check(page.action)
        loaded = await page.load(visit)
        if isinstance(loaded, Done):
            return loaded
        return {**loaded, **self._around(request, visit, str(loaded.get("title", page.title)), page)}

    async def _live_part(self, request: Request, visit: Visit, page: Page) -> str:
        """Render the changing part of a page once more."""
        context = await self._context(request, replace(visit, now=self._service.clock.now()), page)
        if isinstance(context, Done):
            return ""
        return self._renderer.block(page.template, "live", {**_frame(request, request.browser), **context})

    def _around(self, request: Request, visit: Visit, title: str, page: Page | None = None) -> dict[str, Any]:
        actor = visit.desk.visitor.actor
        menu = [entry for entry in PAGES if entry.menu and actor.may(entry.action)]
        here = next((entry for entry in reversed(menu) if _lies_under(request.path, entry.path)), None)
        return {
            "title": title,
            "menu": menu,
            "here": here,
            "actor": actor,
            "tenant": visit.desk.visitor.tenant,
            "may": visit.desk.may,
            "now": visit.now,
            "url": visit.url,
            "live_url": visit.url if page is not None and page.every is not None else None,
        }

    # Answers

    def _page(self, request: Request, template: str, context: Mapping[str, Any], status: int = 200) -> Answer:
        held = request.cookies
        headers, browser = list(_SAFE), request.browser
        maker = CookieMaker(secure=request.secure)
        if not browser:
            browser, made = maker.visit()
            headers.append(("set-cookie", made))
        if cookies.FLASH in held:
            headers.append(("set-cookie", maker.remove(cookies.FLASH)))
        framed = {**_frame(request, browser), **context}
        return Answer(self._renderer.page(template, framed), status, tuple(headers), HTML)

    def _go(self, request: Request, done: Done, forget: tuple[str, ...] = ()) -> Answer:
        maker = CookieMaker(secure=request.secure)
        made = [*done.cookies, *map(maker.remove, forget)]
        if done.told:
            made.append(maker.flash(done.kind, done.told))
        set_cookies = [("set-cookie", cookie) for cookie in made]
        if "hx-request" in request.headers:
            # A script would follow the way by itself, and take the other page for a part of the one that it is on.
            return Answer(b"", headers=(*_SAFE, ("hx-redirect", done.to), *set_cookies), media_type=HTML)
        return Answer(b"", SEE_OTHER, (*_SAFE, ("location", done.to), *set_cookies), HTML)

    def _login_page(self, request: Request, status: int, wrong: str = "") -> Answer:
        to = request.url if request.method in ("GET", "HEAD") and request.path != LOGIN else HOME
        return self._page(request, "login.html", {"title": "Sign in", "next": to, "wrong": wrong}, status)

    def _problem(self, request: Request, refused: Refused) -> Answer:
        kind = CODES[refused.code]
        context = {"title": kind.title, "detail": _told(refused), "status": kind.status, "request_id": request.id}
        answer = self._page(request, "problem.html", context, kind.status)
        return Answer(answer.body, answer.status, (*answer.headers, *refused.headers), answer.media_type)


def _told(refused: Refused) -> str:
    """Return what is wrong, with the field where only the pointer of a flaw names it."""
    field = (refused.flaws[0].pointer or "").lstrip("/") if refused.flaws else ""
    return refused.detail if not field or refused.detail.startswith(field) else f"{field}: {refused.detail}"


def _frame(request: Request, browser: str) -> dict[str, Any]:
    """Return what every page shows or carries."""
    theme = request.cookies.get(cookies.THEME, "")
    return {
        "form_token": form_token(browser),
        "theme": theme if theme in ("light", "dark") else "",
        "flash": flash_of(request.cookies),
        "signed_in": cookies.SESSION in request.cookies,
    }


def _routes(targets: Iterable[Any]) -> list[tuple[Any, Any]]:
    return [(compile_path(target.path)[0], target) for target in targets]


def _lies_under(path: str, menu_path: str) -> bool:
    return path == menu_path or (menu_path != HOME and path.startswith(f"{menu_path}/"))


def _is_ours(place: str) -> bool:
    """Tell whether a place to go on to is a page of ours, and not of someone who made up the link."""
    return _OURS(place) is not None and ".." not in place


def _without_origin_of_links(request: Request) -> Mapping[str, str]:
    """Let someone in who follows a link from another page: that page can neither see nor send anything by it."""
    headers = request.headers
    follows = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest") == "document"
    if request.method == "GET" and follows:
        return {**headers, "sec-fetch-site": "none"}
    return headers
