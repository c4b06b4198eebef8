//! A database in a file, with transactions that commit and one that does not, by redb.

use redb::{Database, ReadableTable, ReadableTableMetadata, TableDefinition};

const TABLE: TableDefinition<'_, u64, &str> = TableDefinition::new("rows");

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let database = Database::create("test.redb")?;
    for block in 0..4_u64 {
        let write = database.begin_write()?;
        {
            let mut table = write.open_table(TABLE)?;
            for key in block * 250..(block + 1) * 250 {
                table.insert(key * 7 % 1_000, &*format!("row {key}"))?;
            }
        }
        if block == 3 { write.abort()? } else { write.commit()? }
    }
    println!("locked: {}", Database::open("test.redb").is_err());
    drop(database);
    let mut database = Database::open("test.redb")?;
    println!("intact: {}", database.check_integrity()?);
    let table = database.begin_read()?.open_table(TABLE)?;
    let (first, last) = (table.first()?.unwrap(), table.last()?.unwrap());
    println!("{} rows, {} to {}", table.len()?, first.1.value(), last.1.value());
    Ok(())
}
