//! The names of the metrics, by the catalogue of the Java driver where it has one, as its Micrometer binding writes them:
//! dashboards made for it carry over. Exporters replace what their format doesn't allow: Prometheus sees
//! `session_cql_requests`.
//!
//! Metrics go to the recorder that the application installs through the `metrics` facade. Install it before the first request:
//! handles, or that there is no recorder (or one of no size), are kept from then on. Times are in seconds.

/// Time of a whole operation, retries and queues included: a histogram by `system` (the backend's name), `operation`, and
/// `exception`: `none`, or the name of the [kind](crate::ErrorKind::name) of the error.
pub const REQUESTS: &str = "session.cql-requests";

/// Operations that ran into their [deadline](crate::TimeoutPhase::Deadline) or waited for it in a queue: a counter by `system`.
pub const CLIENT_TIMEOUTS: &str = "session.cql-client-timeouts";

/// Time that an operation waited in the client before it was sent: a histogram of those that waited.
pub const THROTTLING_DELAY: &str = "session.throttling.delay";

/// Operations that wait in the client: a gauge.
pub const THROTTLING_QUEUE: &str = "session.throttling.queue-size";

/// Operations refused by a full queue: a counter.
pub const THROTTLING_ERRORS: &str = "session.throttling.errors";

/// Time of one attempt on the wire: a histogram by `system`, `node`, `operation` and `exception`.
///
/// The label `node` of this and of all that begin with `nodes.` is the [endpoint](crate::Endpoint) that the attempt went to: a node
/// with its port on CQL, a gateway on HBase. It is empty for what can go to several and wasn't sent to one of them by the client:
/// scans, changes of the schema, and rows of several owners in one request.
pub const MESSAGES: &str = "nodes.cql-messages";

/// Attempts on the wire: a gauge by `system` and `node`.
pub const IN_FLIGHT: &str = "nodes.pool.in-flight";

/// Connections that are open: a gauge by `system` and `node`. HBase alone: the CQL driver doesn't tell how many it has.
pub const OPEN_CONNECTIONS: &str = "nodes.pool.open-connections";

/// How many more requests the connections to a node would take now: a gauge by `system` and `node`. HBase alone, where it is the
/// part of the pool that is free; on CQL a connection takes 32 768, less those [in flight](IN_FLIGHT).
pub const AVAILABLE_STREAMS: &str = "nodes.pool.available-streams";

/// Nodes to which there is a connection: a gauge by `system`. CQL alone, looked at once a second.
pub const CONNECTED_NODES: &str = "session.connected-nodes";

/// Attempts at reads that weren't answered in time, by the client's clock or the server's: a counter by `system` and `node`.
pub const READ_TIMEOUTS: &str = "nodes.errors.request.read-timeouts";

/// Attempts at writes that weren't answered in time, by the client's clock or the server's: a counter by `system` and `node`.
pub const WRITE_TIMEOUTS: &str = "nodes.errors.request.write-timeouts";

/// Attempts for which too few replicas were there, or no node: a counter by `system` and `node`.
pub const UNAVAILABLES: &str = "nodes.errors.request.unavailables";

/// Attempts whose connection broke: a counter by `system` and `node`.
pub const ABORTED: &str = "nodes.errors.request.aborted";

/// Attempts that weren't sent, because there was no connection in time: a counter by `system` and `node`.
pub const UNSENT: &str = "nodes.errors.request.unsent";

/// Attempts that failed in another way: a counter by `system` and `node`; [`MESSAGES`] has the kind.
pub const OTHER_ERRORS: &str = "nodes.errors.request.others";

/// Attempts sent again: a counter by `node`, the one that the attempt before went to, and `exception`, the kind of error that made
/// it necessary.
pub const RETRIES: &str = "nodes.retries.total";

/// Attempts not sent again because the [budget](super::Budget) was spent: a counter by `node`.
pub const RETRIES_REFUSED: &str = "nodes.retries.aborted";

/// Reads sent twice by the hedge: a counter by `node`, the one that was slow.
pub const HEDGES: &str = "nodes.speculative-executions";

/// Times that a circuit opened: a counter by `node`, or the backend's name for what has none. The Java driver has no such thing.
pub const CIRCUIT_OPENED: &str = "nodes.circuit.opened";

/// How many requests the autopilot lets be under way: a gauge by `node`.
pub const CONCURRENCY_LIMIT: &str = "session.concurrency.limit";

/// Streamers that were dropped without `close`: a counter.
pub const STREAMER_UNCLOSED: &str = "session.streamer.unclosed";

/// Rows of such streamers that had no outcome when they were dropped: a counter.
pub const STREAMER_ABANDONED: &str = "session.streamer.abandoned-rows";

/// Bounds for the buckets of histograms, in seconds: fine around the service levels that applications of these databases
/// promise. Give it to the exporter, such as `PrometheusBuilder::set_buckets`.
pub const SLO_BUCKETS: [f64; 14] = [0.000_5, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0];
