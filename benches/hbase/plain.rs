//! A plain blocking client of Thrift 2: generated structs, one connection for each thread.

use std::net::SocketAddr;

use thrift::protocol::{
    TBinaryInputProtocol, TBinaryOutputProtocol, TInputProtocol, TMessageIdentifier, TMessageType, TOutputProtocol,
    TSerializable, TType,
};
use thrift::transport::{
    ReadHalf, TBufferedReadTransport, TBufferedWriteTransport, TIoChannel, TTcpChannel, WriteHalf,
};

use super::generated::{GetArgs, GetMultipleArgs, PutArgs, PutMultipleArgs, TColumnValue, TGet, TPut, TResult};

pub(crate) struct Plain {
    input: TBinaryInputProtocol<TBufferedReadTransport<ReadHalf<TTcpChannel>>>,
    output: TBinaryOutputProtocol<TBufferedWriteTransport<WriteHalf<TTcpChannel>>>,
    sequence: i32,
    table: Vec<u8>,
}

impl Plain {
    pub(crate) fn open(address: SocketAddr, table: &str) -> thrift::Result<Self> {
        let stream = std::net::TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        let (read, write) = TTcpChannel::with_stream(stream).split()?;
        let input = TBinaryInputProtocol::new(TBufferedReadTransport::new(read), true);
        let output = TBinaryOutputProtocol::new(TBufferedWriteTransport::new(write), true);
        Ok(Self { input, output, sequence: 0, table: table.as_bytes().to_vec() })
    }

    pub(crate) fn put(&mut self, key: Vec<u8>, value: &[u8]) -> thrift::Result<()> {
        let arguments = PutArgs { table: self.table.clone(), tput: put(key, value) };
        self.call("put", &arguments, |_| Ok(())).map(|_| ())
    }

    pub(crate) fn put_all(&mut self, keys: impl IntoIterator<Item = Vec<u8>>, value: &[u8]) -> thrift::Result<()> {
        let tputs = keys.into_iter().map(|key| put(key, value)).collect();
        self.call("putMultiple", &PutMultipleArgs { table: self.table.clone(), tputs }, |_| Ok(())).map(|_| ())
    }

    pub(crate) fn get(&mut self, key: Vec<u8>) -> thrift::Result<Option<TResult>> {
        let arguments = GetArgs { table: self.table.clone(), tget: TGet { row: key, columns: None } };
        self.call("get", &arguments, |input| TResult::read_from_in_protocol(input))
    }

    pub(crate) fn get_all(&mut self, keys: impl IntoIterator<Item = Vec<u8>>) -> thrift::Result<Vec<TResult>> {
        let tgets = keys.into_iter().map(|row| TGet { row, columns: None }).collect();
        let rows = self.call("getMultiple", &GetMultipleArgs { table: self.table.clone(), tgets }, |input| {
            let list = input.read_list_begin()?;
            (0..list.size).map(|_| TResult::read_from_in_protocol(input)).collect()
        });
        rows.map(Option::unwrap_or_default)
    }

    /// Sends a call and reads its reply, in which the field 0 is what is returned.
    fn call<T>(
        &mut self,
        method: &str,
        arguments: &impl TSerializable,
        read: impl Fn(&mut dyn TInputProtocol) -> thrift::Result<T>,
    ) -> thrift::Result<Option<T>> {
        self.sequence += 1;
        self.output.write_message_begin(&TMessageIdentifier::new(method, TMessageType::Call, self.sequence))?;
        arguments.write_to_out_protocol(&mut self.output)?;
        self.output.write_message_end()?;
        self.output.flush()?;
        let message = self.input.read_message_begin()?;
        assert_eq!((message.message_type, message.sequence_number), (TMessageType::Reply, self.sequence));
        let mut answer = None;
        loop {
            let field = self.input.read_field_begin()?;
            match (field.field_type, field.id) {
                (TType::Stop, _) => return Ok(answer),
                (_, Some(0)) => answer = Some(read(&mut self.input)?),
                other => return Err(thrift::Error::from(format!("an exception: {other:?}"))),
            }
        }
    }
}

fn put(row: Vec<u8>, value: &[u8]) -> TPut {
    let cell =
        TColumnValue { family: b"cf".to_vec(), qualifier: b"value".to_vec(), value: value.to_vec(), timestamp: None };
    TPut { row, column_values: vec![cell], timestamp: None, attributes: None }
}
