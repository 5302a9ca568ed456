"""An app for `tide submit --app`."""

from tidewheel import App

app = App("sqlite:///jobs.db")


@app.task(name="greet", queue="mail")
def greet(name: str) -> str:
    return f"hello {name}"
