use std::time::Duration;

use reqwest::header::ACCEPT;
use reqwest::{Client, StatusCode, Url};
use tokio::sync::OnceCell;

use super::client::build;
use crate::config::is_loopback_url;
use crate::error::chain;

/// Fetches one JSON document that somebody publishes, over the same careful client as the turns: https
/// (or http on this machine), no redirect, no proxy, bounded in time and length.
pub struct JsonClient {
    url: Url,
    limit: Duration,
    most: usize,
    client: OnceCell<Client>,
}

impl JsonClient {
    /// For the document at `url`, of at most `most` bytes, to come within `limit`. Nothing is opened
    /// yet.
    ///
    /// # Errors
    /// A sentence, where it is no https URL, no http URL on this machine, or has a password in it.
    pub fn new(url: &str, limit: Duration, most: usize) -> Result<Self, String> {
        let parsed = Url::parse(url).map_err(|error| format!("`{url}` is no URL: {error}"))?;
        let is_here = parsed.scheme() == "http" && is_loopback_url(url);
        if parsed.scheme() != "https" && !is_here {
            return Err(format!("`{url}` must be https, or http on this machine"));
        }
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err("a URL in a configuration must not have a user or a password in it".to_owned());
        }
        Ok(Self { url: parsed, limit, most, client: OnceCell::new() })
    }

    /// The document as it is now, unparsed.
    ///
    /// # Errors
    /// A sentence, where it does not come in time, with status 200 and short enough.
    pub async fn get(&self) -> Result<Vec<u8>, String> {
        let fetched = tokio::time::timeout(self.limit, self.fetch()).await;
        let late = |_| format!("`{}` did not answer within {} s", self.url, self.limit.as_secs());
        fetched.map_err(late)?
    }

    async fn fetch(&self) -> Result<Vec<u8>, String> {
        let request = self.client().await?.get(self.url.clone()).header(ACCEPT, "application/json");
        let failed = |error: reqwest::Error| format!("`{}`: {}", self.url, chain(&error.without_url()));
        let mut response = request.send().await.map_err(failed)?;
        if response.status() != StatusCode::OK {
            return Err(format!("`{}` answered {}", self.url, response.status()));
        }
        let mut document = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(failed)? {
            if document.len() + chunk.len() > self.most {
                return Err(format!("`{}` is longer than {} bytes", self.url, self.most));
            }
            document.extend_from_slice(&chunk);
        }
        Ok(document)
    }

    async fn client(&self) -> Result<&Client, String> {
        let secure = self.url.scheme() == "https";
        let built = self.client.get_or_try_init(|| async {
            tokio::task::spawn_blocking(move || build(secure)).await.map_err(|error| error.to_string())?
        });
        built.await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    /// What a client gets of a server that answers `answer`, and how often it was asked.
    async fn got(answer: &'static str) -> Result<Vec<u8>, String> {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/keys", listener.local_addr().unwrap());
        let serving = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut head = [0; 1024];
            let length = stream.read(&mut head).await.unwrap();
            stream.write_all(answer.as_bytes()).await.unwrap();
            String::from_utf8_lossy(&head[..length]).into_owned()
        };
        let client = JsonClient::new(&url, Duration::from_secs(5), 8).unwrap();
        let (head, got) = tokio::join!(serving, client.get());
        assert!(head.starts_with("GET /keys HTTP/1.1\r\n"), "{head}");
        got
    }

    #[tokio::test]
    async fn a_document_is_taken_whole_short_and_from_where_it_was_looked_for() {
        let good = got("HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\n{\"a\": 1}").await;
        assert_eq!(good.unwrap(), b"{\"a\": 1}");
        let long = got("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{\"a\":  1}").await;
        assert!(long.unwrap_err().contains("longer than 8 bytes"));
        let elsewhere =
            got("HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:9/\r\ncontent-length: 0\r\n\r\n").await;
        assert!(elsewhere.unwrap_err().contains("302"));
        let torn = got("HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\n{").await;
        assert!(torn.is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_says_nothing_is_given_up() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/keys", listener.local_addr().unwrap());
        let client = JsonClient::new(&url, Duration::from_secs(5), 8).unwrap();
        assert!(client.get().await.unwrap_err().contains("within 5 s"));
    }

    #[test]
    fn an_address_that_others_could_answer_for_is_refused() {
        let client = |url: &str| JsonClient::new(url, Duration::from_secs(1), 8).map(drop);
        for good in ["https://login.example.org/keys", "http://127.0.0.1:8080/keys", "http://localhost/keys"]
        {
            assert_eq!(client(good), Ok(()), "{good}");
        }
        for bad in [
            "http://login.example.org/keys",
            "file:///etc/passwd",
            "ftp://127.0.0.1/keys",
            "keys.json",
            "https://a:b@h/k",
        ] {
            assert!(client(bad).is_err(), "{bad}");
        }
        assert!(!client("https://a:secret@h/k").unwrap_err().contains("secret"));
    }
}
