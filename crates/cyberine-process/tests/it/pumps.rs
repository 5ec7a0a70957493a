use std::time::Duration;

use bytes::Bytes;
use cyberine_process::{OutputError, Spawn};
use cyberine_testkit::is_gone;

use crate::{PATIENCE, block_on, eventually, python, read_all, read_line, script, start};

#[test]
fn too_much_output_is_an_error_and_ends_the_child() {
    const LIMIT: usize = 1024 * 1024;
    block_on(async {
        let flood = "head -c 50000000 /dev/zero; exec sleep 1000";
        let mut child = start(Spawn { output_limit: LIMIT, ..script(flood) });
        let mut seen = 0;
        let error = loop {
            match child.next_chunk().await {
                Ok(chunk) => seen += chunk.expect("an error comes first").len(),
                Err(error) => break error,
            }
        };
        assert!(matches!(error, OutputError::TooMuch { limit: LIMIT }), "{error}");
        assert!(seen <= LIMIT, "{seen}");
        assert!(!child.finish().await.unwrap().status.success());
    });
}

#[test]
fn output_up_to_the_limit_is_no_error() {
    block_on(async {
        let mut child = start(Spawn { output_limit: 100_000, ..script("head -c 100000 /dev/zero") });
        assert_eq!(read_all(&mut child).await.len(), 100_000);
        assert!(child.finish().await.unwrap().status.success());
    });
}

#[test]
fn too_much_output_ends_the_child_also_while_nobody_reads_it() {
    block_on(async {
        let mut child = start(Spawn { output_limit: 100_000, ..script("exec yes") });
        assert!(!child.finish().await.unwrap().status.success());
    });
}

#[test]
fn a_child_nobody_reads_waits() {
    let scratch = tempfile::tempdir().unwrap();
    let done = scratch.path().join("done");
    block_on(async {
        let flood = format!("head -c 8000000 /dev/zero; touch '{}'", done.display());
        let mut child = start(script(&flood));
        let early =
            tokio::time::timeout(Duration::from_millis(300), eventually("done", || done.exists())).await;
        assert!(early.is_err(), "eight megabytes went nowhere");
        assert_eq!(read_all(&mut child).await.len(), 8_000_000);
        assert!(child.finish().await.unwrap().status.success() && done.exists());
    });
}

#[test]
fn a_character_cut_in_two_arrives_as_its_bytes() {
    let halves = "import sys, time\nout = sys.stdout.buffer\n\
                  out.write(b'caf\\xc3'); out.flush(); sys.stdin.read(1)\n\
                  out.write(b'\\xa9 \\xe2\\x82'); out.flush()";
    block_on(async {
        // The child goes on once its input is closed, which is at once; what matters is that no
        // byte is touched wherever the cut falls, also at the very end.
        let mut child = start(python(halves));
        assert_eq!(read_all(&mut child).await, b"caf\xc3\xa9 \xe2\x82");
        assert!(child.finish().await.unwrap().status.success());
    });
}

#[test]
fn input_and_output_larger_than_any_pipe_do_not_deadlock() {
    let talkative = "import sys\nsys.stdout.write('x' * 1000000); sys.stdout.flush()\n\
                     sys.stderr.write('y' * 1000000); sys.stderr.flush()\n\
                     print(len(sys.stdin.buffer.read()))";
    block_on(async {
        let mut child = start(Spawn { input: Bytes::from(vec![b'z'; 200_000]), ..python(talkative) });
        let output = read_all(&mut child).await;
        assert!(output.ends_with(b"x200000\n") && output.len() == 1_000_007, "{}", output.len());
        assert!(child.finish().await.unwrap().status.success());
    });
}

#[test]
fn input_nobody_reads_is_no_error() {
    block_on(async {
        let input = Bytes::from(vec![b'z'; 1_000_000]);
        let mut child = start(Spawn { input: input.clone(), ..script("exec <&-; echo done") });
        assert_eq!(read_all(&mut child).await, b"done\n");
        assert!(child.finish().await.unwrap().status.success());
        let mut child = start(Spawn { input, ..script("exit 4") });
        assert_eq!(child.finish().await.unwrap().status.code(), Some(4));
    });
}

#[test]
fn input_is_closed_when_there_is_none() {
    block_on(async {
        let mut child = start(script("cat; echo end"));
        assert_eq!(read_all(&mut child).await, b"end\n");
    });
}

#[test]
fn a_flooded_error_stream_is_drained_and_its_end_is_kept() {
    block_on(async {
        let mut child = start(script("head -c 5000000 /dev/zero >&2; echo out; echo last words >&2"));
        assert_eq!(read_all(&mut child).await, b"out\n");
        let exit = child.finish().await.unwrap();
        assert!(exit.stderr.ends_with("last words\n") && exit.stderr.len() == 8192, "{}", exit.stderr.len());
        assert_eq!(exit.stderr_bytes, 5_000_011);
    });
}

#[test]
fn output_ends_although_something_left_behind_keeps_the_pipe() {
    block_on(async {
        let mut child = start(script("sleep 1000 & echo $!"));
        let sleeper: u32 = read_line(&mut child).await.parse().unwrap();
        assert_eq!(child.next_chunk().await.unwrap(), None);
        let exit = child.finish().await.unwrap();
        assert!(exit.status.success());
        assert_eq!((exit.left_behind.killed, exit.left_behind.left), (1, 0));
        assert!(is_gone(sleeper));
    });
}

#[test]
fn output_ends_although_something_left_behind_goes_on_writing() {
    block_on(async {
        let mut child = start(script("(while :; do echo noise; sleep 0.05; done) & echo answer"));
        let answer = tokio::time::timeout(PATIENCE, read_all(&mut child)).await.expect("it ends");
        assert!(String::from_utf8(answer).unwrap().contains("answer"));
        let exit = child.finish().await.unwrap();
        assert!(exit.status.success() && exit.left_behind.killed > 0 && exit.left_behind.left == 0);
    });
}

#[test]
fn a_child_hears_every_message_of_a_burst() {
    block_on(async {
        let mut child = start(Spawn { hold_input: true, ..script("read -r _; exec wc -l") });
        for _ in 0..5000 {
            assert_eq!(child.send(Bytes::from_static(b"line\n")), Ok(()));
        }
        child.close_input();
        assert_eq!(read_all(&mut child).await.trim_ascii(), b"4999");
    });
}

#[test]
fn a_large_answer_written_just_before_the_end_is_whole() {
    block_on(async {
        let mut child = start(script("head -c 131204 /dev/zero; sleep 1000 >&2 & exit 0"));
        assert_eq!(read_all(&mut child).await.len(), 131_204);
        assert_eq!(child.finish().await.unwrap().left_behind.killed, 1);
    });
}

#[test]
fn a_dropped_wait_loses_no_chunk() {
    block_on(async {
        let mut child =
            start(python("import time\nfor i in range(50):\n print(i, flush=True); time.sleep(0.002)"));
        let mut all = Vec::new();
        let read = async {
            loop {
                match tokio::time::timeout(Duration::from_micros(500), child.next_chunk()).await {
                    Ok(Ok(Some(chunk))) => all.extend_from_slice(&chunk),
                    Ok(end) => return end,
                    Err(_) => {}
                }
            }
        };
        assert_eq!(tokio::time::timeout(PATIENCE, read).await.unwrap().unwrap(), None);
        let expected: String = (0..50).map(|i| format!("{i}\n")).collect();
        assert_eq!(String::from_utf8(all).unwrap(), expected);
    });
}
