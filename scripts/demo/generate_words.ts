/**
 * The words generated orders are made of.
 *
 * @module
 */

/** How people of a country are called and where they live. */
export interface Country {
  /** ISO 3166, two letters. */
  readonly code: string;
  readonly given: readonly string[];
  readonly family: readonly string[];
  /** Whether the family name is written first. @default {false} */
  readonly isFamilyFirst?: true;
  /** Postal code and name. */
  readonly cities: readonly (readonly [postalCode: string, city: string])[];
  /** Streets, with `#` for the number of the house. */
  readonly streets: readonly string[];
}

/** Where customers live: the ones with most customers first. */
export const countries: readonly Country[] = [
  {
    code: "DE",
    given: ["Jürgen", "Anke", "Lukas", "Käthe", "Mehmet", "Sören", "Ute", "Björn", "Hannah"],
    family: ["Müller", "Weiß", "Schröder", "Yılmaz", "Groß", "Köhler", "Fischer", "von der Heide"],
    cities: [["10115", "Berlin"], ["50667", "Köln"], ["80331", "München"], ["04109", "Leipzig"]],
    streets: ["Hauptstraße #", "Lindenallee #", "Am Mühlgraben #", "Goethestraße #"],
  },
  {
    code: "FR",
    given: ["Zoé", "François", "Élodie", "Noël", "Amélie", "Théo", "Maëlle", "Karim"],
    family: ["Lefèvre", "Dubois", "Benoît", "Garçon", "Moreau", "Bélanger", "Haddad"],
    cities: [["75011", "Paris"], ["69003", "Lyon"], ["42000", "Saint-Étienne"], [
      "13001",
      "Marseille",
    ]],
    streets: ["# rue de la République", "# avenue des Tilleuls", "# boulevard Voltaire"],
  },
  {
    code: "GB",
    given: ["Siân", "Oliver", "Zoë", "Priya", "Callum", "Imogen", "Seán", "Amara"],
    family: ["Clarke", "O'Neill", "Patel", "Brontë", "Llewellyn", "Okafor", "Hughes"],
    cities: [["M1 1AE", "Manchester"], ["EH1 1BB", "Edinburgh"], ["CF10 1EP", "Cardiff"]],
    streets: ["# High Street", "# Station Road", "Flat #, Albert Court", "# Mill Lane"],
  },
  {
    code: "ES",
    given: ["Íñigo", "Begoña", "José", "Lucía", "Martín", "Ainhoa", "Andrés"],
    family: ["Núñez", "Ibáñez", "García", "Peña", "Muñoz", "Echeverría"],
    cities: [["28013", "Madrid"], ["15001", "A Coruña"], ["46002", "València"]],
    streets: ["Calle Mayor, #", "Paseo de la Constitución, #", "Plaza de España, #"],
  },
  {
    code: "PL",
    given: ["Łukasz", "Małgorzata", "Grażyna", "Paweł", "Zofia", "Bartłomiej"],
    family: ["Wójcik", "Kowalczyk", "Dąbrowska", "Żak", "Szymański", "Gołąb"],
    cities: [["00-001", "Warszawa"], ["90-001", "Łódź"], ["30-001", "Kraków"]],
    streets: ["ul. Długa #", "ul. Świętojańska #", "al. Niepodległości #"],
  },
  {
    code: "SE",
    given: ["Åsa", "Göran", "Märta", "Elsa", "Björn", "Håkan"],
    family: ["Lindström", "Åkesson", "Sjögren", "Öberg", "Nilsson"],
    cities: [["211 20", "Malmö"], ["411 03", "Göteborg"], ["753 20", "Uppsala"]],
    streets: ["Storgatan #", "Björkvägen #", "Södra Förstadsgatan #"],
  },
  {
    code: "NL",
    given: ["Daniël", "Fleur", "Joost", "Saskia", "Noa", "Thijs"],
    family: ["van den Berg", "de Vries", "Güneş", "Jansen", "van 't Hof"],
    cities: [["1012 JS", "Amsterdam"], ["3511 AX", "Utrecht"], ["9711 LM", "Groningen"]],
    streets: ["Keizersgracht #", "Dorpsstraat #", "Prins Hendrikkade #"],
  },
  {
    code: "IT",
    given: ["Niccolò", "Chiara", "Giosuè", "Alessandra", "Matteo", "Noemi"],
    family: ["D'Angelo", "Colò", "Ferrari", "Lo Verde", "Salò"],
    cities: [["20121", "Milano"], ["10121", "Torino"], ["95131", "Catania"]],
    streets: ["Via Garibaldi #", "Corso dell'Unità #", "Piazza della Libertà #"],
  },
  {
    code: "CZ",
    given: ["Jiří", "Eliška", "Tomáš", "Zdeněk", "Běla"],
    family: ["Dvořák", "Nováková", "Říha", "Šťastný", "Procházková"],
    cities: [["110 00", "Praha"], ["602 00", "Brno"], ["370 01", "České Budějovice"]],
    streets: ["Náměstí Míru #", "Křížová #", "Lidická #"],
  },
  {
    code: "GR",
    given: ["Γιώργος", "Ελένη", "Δημήτρης", "Σοφία"],
    family: ["Παπαδόπουλος", "Οικονόμου", "Νικολαΐδης", "Βασιλείου"],
    cities: [["105 57", "Αθήνα"], ["546 24", "Θεσσαλονίκη"]],
    streets: ["Ερμού #", "Λεωφόρος Νίκης #"],
  },
  {
    code: "IS",
    given: ["Þórdís", "Guðrún", "Sigurður", "Björk"],
    family: ["Jónsdóttir", "Ægisson", "Þorvaldsson", "Sigurðardóttir"],
    cities: [["101", "Reykjavík"], ["600", "Akureyri"]],
    streets: ["Laugavegur #", "Skólavörðustígur #"],
  },
  {
    code: "TR",
    given: ["Ayşe", "Çağlar", "Işıl", "Ömer", "Gülşen"],
    family: ["Öztürk", "Şahin", "Doğan", "Çelik"],
    cities: [["34421", "İstanbul"], ["06420", "Ankara"], ["35210", "İzmir"]],
    streets: ["İstiklal Caddesi No: #", "Atatürk Bulvarı No: #"],
  },
  {
    code: "US",
    given: ["Renée", "Tyler", "María", "Jordan", "Chloë"],
    family: ["Johnson", "Peña", "Nguyen", "O'Brien", "St. James"],
    cities: [["97205", "Portland, OR"], ["88001", "Las Cruces, NM"], ["02139", "Cambridge, MA"]],
    streets: ["#0 Maple Avenue", "#5 W 3rd Street, Apt 2", "# Cañon Drive"],
  },
  {
    code: "JP",
    given: ["さくら", "翔太", "美咲", "健一"],
    family: ["高橋", "佐藤", "渡邉", "小林"],
    isFamilyFirst: true,
    cities: [["150-0001", "東京都渋谷区"], ["530-0001", "大阪市北区"], [
      "604-8571",
      "京都市中京区",
    ]],
    streets: ["神宮前#番地", "梅田#番地", "寺町通#番地"],
  },
];

/** What the shop sells: number, title and price in cents. */
export const catalogue: readonly (readonly [sku: string, title: string, priceCents: number])[] = [
  ["TEA-SEN-100", "Sencha, 100 g", 1_290],
  ["TEA-EGR-250", "Earl Grey, 250 g", 1_450],
  ["TEA-ROO-100", "Rooibos, 100 g", 690],
  ["COF-ETH-500", "Yirgacheffe coffee, whole beans, 500 g", 1_890],
  ["COF-COL-1000", "Colombian coffee, whole beans, 1 kg", 2_750],
  ["COF-DEC-250", "Decaf coffee, ground, 250 g", 995],
  ["MUG-BLU", "Stoneware mug, blue", 1_600],
  ["MUG-SET-4", "Porcelain mugs, set of 4", 4_200],
  ["POT-CST-08", "Cast-iron teapot, 0.8 l", 5_995],
  ["POT-GLS-12", "Glass teapot with strainer, 1.2 l", 3_450],
  ["KTL-GSN", "Gooseneck kettle, 0.9 l", 8_900],
  ["GRD-HND", "Hand grinder, ceramic burrs", 6_450],
  ["GRD-ELE", "Electric grinder, 40 steps", 18_900],
  ["FLT-V60-100", "Paper filters, size 2, 100 pieces", 590],
  ["DRP-CER", "Ceramic dripper, size 2", 2_490],
  ["SCL-DIG", "Kitchen scale with timer", 3_990],
  ["MCH-WSK", "Bamboo whisk for matcha (茶筅)", 1_850],
  ["MCH-POW-30", "Matcha powder, 30 g", 2_400],
  ["CHO-PRL-250", "Pralinés assortis, 250 g", 1_975],
  ["CHO-BAR-85", "Crème brûlée chocolate, 85 g", 480],
  ["HNY-LIN-500", "Lindenblütenhonig, 500 g", 895],
  ["BSC-SPK-400", "Speculoos “à l’ancienne”, 400 g", 640],
  ["GFT-CRD-25", "Gift card, €25", 2_500],
  ["GFT-BOX", "Gift box with ribbon", 350],
];
