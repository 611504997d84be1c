//! Spans: a task's span carries group and name, and the spawner's context is kept.

mod support;

use std::fmt::Write as _;
use std::future::pending;
use std::sync::{Once, OnceLock};

use stoppable_group::{Restart, TaskError, TaskGroup, defer, ok, race, with_timeout};
use stoppable_scope::OrCancelledExt;
use support::{Log, ends, ms, secs};
use tokio::time::sleep;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id};
use tracing::{Event, Instrument, Subscriber, info, info_span};
use tracing_subscriber::layer::{Context, Layer, SubscriberExt};
use tracing_subscriber::registry::{LookupSpan, Registry};

/// Notes each event as the chain of its spans, outermost first, and its message.
struct Chain;

struct Fields(String);

#[derive(Default)]
struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        let name = field.name();
        let _ = if name == "message" {
            write!(self.0, " {value:?}")
        } else {
            write!(self.0, " {name}={value:?}")
        };
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Chain {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, context: Context<'_, S>) {
        let mut line = Line(attributes.metadata().name().to_owned());
        attributes.record(&mut line);
        if let Some(span) = context.span(id) {
            span.extensions_mut().insert(Fields(line.0));
        }
    }

    fn on_event(&self, event: &Event<'_>, context: Context<'_, S>) {
        let mut line = Line::default();
        for span in context.event_scope(event).into_iter().flatten().collect::<Vec<_>>().into_iter().rev() {
            let extensions = span.extensions();
            let fields = extensions.get::<Fields>().map_or("", |fields| &fields.0);
            let _ = write!(line.0, "{fields} > ");
        }
        event.record(&mut line);
        lines().add(line.0);
    }
}

fn lines() -> &'static Log {
    static LINES: OnceLock<Log> = OnceLock::new();
    LINES.get_or_init(Log::default)
}

/// Blocking threads have only the global subscriber, so all tests share it, and tell themselves apart by a number.
fn install() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| tracing::subscriber::set_global_default(Registry::default().with(Chain)).unwrap());
}

/// What was logged below the span of request `req`, without that.
fn logged(req: u64) -> Vec<String> {
    let prefix = format!("request req={req} > ");
    let lines = lines().lines().into_iter();
    lines.filter_map(|line| line.strip_prefix(&prefix).map(str::to_owned)).collect()
}

// B-119: child, nested child, blocking job and both attempts are in the span of the request.
#[tokio::test]
async fn all_work_of_a_request_is_in_its_span() {
    install();
    let work = TaskGroup::builder().name("outer").run(|group| async move {
        group.task("child").spawn(async { info!("child") }).await?;
        let nested = group.task("parent").spawn(async {
            let nested = TaskGroup::builder()
                .name("inner")
                .run(|group| async move { ok(group.task("nested").spawn(async { info!("nested") }).await?) });
            nested.await
        });
        nested.await?;
        group.task("thread").spawn_blocking(|_| info!("blocking")).await?;
        let mut attempt = 0;
        let restart = Restart::at_most(3, secs(1)).run(move || {
            attempt += 1;
            async move {
                info!(attempt, "tries");
                if attempt == 1 { Err(TaskError::from("first")) } else { Ok(()) }
            }
        });
        group.task("retried").spawn(restart).await?;
        ok(())
    });
    work.instrument(info_span!("request", req = 7)).await.unwrap();
    let mut events = logged(7);
    events.retain(|line| !line.contains("starting again"));
    assert_eq!(
        events,
        [
            "task group=outer name=child >  child",
            "task group=outer name=parent > task group=inner name=nested >  nested",
            "task group=outer name=thread >  blocking",
            "task group=outer name=retried >  attempt=1 tries",
            "task group=outer name=retried >  attempt=2 tries",
        ]
        .map(|line| line
            .replace("attempt=1 tries", "tries attempt=1")
            .replace("attempt=2 tries", "tries attempt=2"))
    );
}

// The spawner's span at the spawn is the parent, not that of the group, nor the one that is open when it runs.
#[tokio::test(start_paused = true)]
async fn the_span_is_that_of_the_spawn() {
    install();
    let group = async {
        let mut group = TaskGroup::builder().name("pool").open();
        for req in [81, 82] {
            let _span = info_span!("request", req).entered();
            group.task("job").spawn(async {
                info!("before");
                sleep(ms(1)).await;
                info!("after");
            });
        }
        group.join().await
    };
    ends(group.instrument(info_span!("request", req = 80))).await.unwrap();
    for req in [81, 82] {
        // Below the span that was open when they were spawned, which itself is below that of the pool.
        let prefix = format!("request req={req} > task group=pool name=job > ");
        let lines: Vec<_> = logged(80).into_iter().filter(|line| line.starts_with(&prefix)).collect();
        assert_eq!(lines, ["before", "after"].map(|text| format!("{prefix} {text}")));
    }
}

// Local tasks, services, and the runners of a race too.
#[tokio::test(start_paused = true)]
async fn every_way_to_spawn_keeps_the_span() {
    install();
    let local = tokio::task::LocalSet::new();
    let work = async {
        TaskGroup::builder()
            .name("ways")
            .run(|group| async move {
                group.task("local").spawn_local(async { info!("event") }).await?;
                group.task("service").service().spawn(async { info!("event") }).await?;
                group.task("value").spawn_value(async { info!("event") }).await?;
                group.shield(async { info!("event") }).await?;
                ok(group.task("free").spawn_when_free(async { info!("event") }).await?.await?)
            })
            .await?;
        race([async { info!("event") }]).await
    };
    ends(local.run_until(work.instrument(info_span!("request", req = 9)))).await.unwrap();
    let names = ["local", "service", "value", "", "free", ""];
    let events: Vec<_> = logged(9).into_iter().filter(|line| line.ends_with("event")).collect();
    assert_eq!(events.len(), names.len());
    for (line, name) in events.iter().zip(names) {
        assert!(line.starts_with("task group=") && line.contains(&format!("name={name}")), "{line}");
    }
}

// The answer to a cancel, destructors and closers run in the span as well, also of a task that never began.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_task_is_in_its_span() {
    install();
    struct Says(&'static str);
    impl Drop for Says {
        fn drop(&mut self) {
            info!("{}", self.0);
        }
    }
    let work = TaskGroup::builder().name("ending").run(|group| async move {
        group.task("cut").spawn(async {
            let _says = Says("cut");
            pending::<()>().await;
        });
        group.task("answers").spawn(async {
            let _conn = defer((), secs(1), |()| async { info!("closed") });
            let asked = pending::<()>().or_cancelled().await;
            info!("answers");
            ok(asked?)
        });
        sleep(ms(1)).await;
        let says = Says("never began");
        group.task("late").spawn(async move {
            let _says = says;
        });
        group.cancel(());
        ok(())
    });
    ends(with_timeout(secs(5), work).instrument(info_span!("request", req = 10))).await.unwrap();
    let events = logged(10);
    for (name, text) in [("cut", "cut"), ("answers", "answers"), ("late", "never began")] {
        let line = format!("task group=ending name={name} >  {text}");
        assert!(events.contains(&line), "{line}: {events:?}");
    }
    let closed: Vec<_> = events.iter().filter(|line| line.ends_with("closed")).collect();
    assert_eq!(closed.len(), 1);
    assert!(closed[0].contains("name=answers > "), "{closed:?}");
}

// An event of the library about a task is in the span of that task.
#[tokio::test(start_paused = true)]
async fn what_the_library_says_about_a_task_is_in_its_span() {
    install();
    let work = TaskGroup::builder().name("graced").run(|group| async move {
        let stubborn = group.task("stubborn").grace(secs(1)).spawn(pending::<()>());
        sleep(ms(1)).await;
        assert!(stubborn.shutdown().await.is_err());
        ok(())
    });
    ends(work.instrument(info_span!("request", req = 11))).await.unwrap();
    let events = logged(11);
    assert!(
        events.iter().any(|line| line.starts_with("task group=graced name=stubborn > ")
            && line.contains("cut at the end of its grace")),
        "{events:?}"
    );
}
