//! `run.json` is what `docs/formats/run.schema.json` says, no less and no more.

use cyberine_run_store::RunStore;
use serde_json::{Value, json};

use crate::stage::Stage;

const SCHEMA: &str = include_str!("../../../../docs/formats/run.schema.json");

/// The schema with nothing allowed that it does not name.
fn closed(schema: &mut Value) {
    if let Some(object) = schema.as_object_mut() {
        if object.contains_key("properties") && object.contains_key("type") {
            object.insert("additionalProperties".to_owned(), json!(false));
        }
        object.values_mut().for_each(closed);
    }
}

#[tokio::test]
async fn a_run_has_exactly_the_members_that_are_published() {
    let mut schema: Value = serde_json::from_str(SCHEMA).unwrap();
    closed(&mut schema);
    let validator = jsonschema::validator_for(&schema).unwrap();
    for answers in
        [vec![("a", "Paris"), ("b", "paris."), ("c", "Rome")], vec![("a", "x"), ("b", "")], vec![("a", "")]]
    {
        let stage = Stage::free(&answers);
        let id = stage.finished("capital of France?").await;
        let run = serde_json::to_value(stage.store.load(id).await.unwrap().unwrap()).unwrap();
        let faults: Vec<String> =
            validator.iter_errors(&run).map(|fault| format!("{}: {fault}", fault.instance_path())).collect();
        assert_eq!(faults, Vec::<String>::new(), "{run:#}");
        let mut more = run.clone();
        more["steps"][0]["surprise"] = json!(1);
        assert!(!validator.is_valid(&more), "an unpublished member went unnoticed");
    }
}
