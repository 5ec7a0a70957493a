use super::*;
use proptest::prelude::*;

fn criterion(name: &str, weight: u32) -> Criterion {
    Criterion { name: name.to_owned(), weight, description: None }
}

#[test]
fn a_rubric_is_shown_as_words_with_its_weights() {
    let fit = Criterion { description: Some(" does what is asked\n".to_owned()), ..criterion("fit", 3) };
    let rubric = Rubric::new(Some("For a release.\n"), vec![fit, criterion("clarity", 1)]).unwrap();
    let text = "For a release.\n\n- fit (weight 3): does what is asked\n- clarity (weight 1)\n";
    assert_eq!(rubric.text, text);
    let bare = Rubric::new(None, vec![criterion("fit", 1)]).unwrap();
    assert_eq!(bare.text, "- fit (weight 1)\n");
}

#[test]
fn criteria_that_cannot_be_scored_are_refused_with_what_to_do() {
    let refused = |criteria: Vec<Criterion>| Rubric::new(None, criteria).unwrap_err().to_string();
    assert_eq!(refused(Vec::new()), "it has 0 criteria, and must have from 1 to 12");
    let many = (0..13).map(|at| criterion(&format!("c{at}"), 1)).collect();
    assert_eq!(refused(many), "it has 13 criteria, and must have from 1 to 12");
    let twice = refused(vec![criterion("a", 1), criterion("b", 1), criterion("a", 2)]);
    assert_eq!(twice, "two of its criteria are named `a`; give one of them another name");
    let read = |text: &str| serde_json::from_str::<Criterion>(text);
    assert_eq!(read(r#"{"name":"fit"}"#).unwrap(), criterion("fit", 1));
    for (wrong, said) in [
        (r#"{"name":""}"#.to_owned(), "from 1 to 40"),
        (r#"{"name":"a b"}"#.to_owned(), "put other words into `description`"),
        (format!(r#"{{"name":"{}"}}"#, "x".repeat(41)), "from 1 to 40"),
        (r#"{"name":"a","weight":0}"#.to_owned(), "`weight` is 0, and not from 1 to 100"),
        (r#"{"name":"a","weight":101}"#.to_owned(), "`weight` is 101"),
        (r#"{"name":"a","weight":1.5}"#.to_owned(), "invalid type"),
        (r#"{"name":"a","wieght":2}"#.to_owned(), "unknown field `wieght`"),
    ] {
        let error = read(&wrong).unwrap_err().to_string();
        assert!(error.contains(said), "{wrong}: {error}");
    }
}

#[test]
fn a_total_is_the_mean_by_weight_and_the_highest_stands_alone() {
    let criteria = [criterion("a", 3), criterion("b", 1)];
    assert_eq!(total(&criteria, &[8.0, 4.0]), 7.0);
    assert_eq!(total(&criteria, &[0.1, 0.3]), total(&criteria, &[0.2, 0.0]), "both are 0.15");
    assert_eq!(total(&[criterion("a", 1), criterion("b", 1), criterion("c", 1)], &[10.0, 0.0, 0.0]), 3.33);
    assert_eq!(highest(&[1.0, 3.0, 2.0]), Some(1));
    assert_eq!(highest(&[3.0, 1.0, 3.0]), None);
    assert_eq!(highest(&[]), None);
}

proptest! {
    #[test]
    fn no_total_leaves_the_range_of_its_scores(
        of in proptest::collection::vec((1..=100_u32, 0.0..=10.0_f64), 1..=12)
    ) {
        let criteria: Vec<Criterion> = of.iter().map(|(weight, _)| criterion("x", *weight)).collect();
        let scores: Vec<f64> = of.iter().map(|(_, score)| *score).collect();
        let least = scores.iter().copied().fold(10.0, f64::min);
        let most = scores.iter().copied().fold(0.0, f64::max);
        let total = total(&criteria, &scores);
        prop_assert!((least - 0.005..=most + 0.005).contains(&total) && (0.0..=10.0).contains(&total));
    }
}
